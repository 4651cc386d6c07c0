"""Runs the player's JavaScript tests, so that one pytest run covers both languages."""

from __future__ import annotations

import subprocess
from pathlib import Path

HERE = Path(__file__).parent


def test_player(node: str) -> None:
    scripts = sorted(HERE.glob("*.test.js"))
    assert scripts
    done = subprocess.run(
        [node, "--test", *map(str, scripts)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
