"""Writes the JSON files of random checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
