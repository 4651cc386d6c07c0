"""Finds the JavaScript engine that runs the page's modules in tests."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def node() -> str:
    """The system's node, or the one that Playwright's driver brings along."""
    found = shutil.which("node") or _node_of_playwright()
    if found is None:
        pytest.skip("node is neither installed (apt-get install nodejs) nor here with Playwright")
    return found


def _node_of_playwright() -> str | None:
    spec = find_spec("playwright")
    if spec is None or spec.origin is None:
        return None
    return shutil.which("node", path=str(Path(spec.origin).parent / "driver"))
