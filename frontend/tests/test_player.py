"""Runs the player's JavaScript tests, so that one pytest run covers both languages."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def find_node() -> str | None:
    """The system's node, or the one that Playwright's driver brings along."""
    if found := shutil.which("node"):
        return found
    spec = find_spec("playwright")
    if spec is None or spec.origin is None:
        return None
    return shutil.which("node", path=str(Path(spec.origin).parent / "driver"))


def test_player() -> None:
    node = find_node()
    if node is None:
        pytest.skip("node is neither installed (apt-get install nodejs) nor here with Playwright")
    scripts = sorted(HERE.glob("*.test.js"))
    assert scripts
    done = subprocess.run(
        [node, "--test", *map(str, scripts)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
