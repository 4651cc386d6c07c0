"""The harness measures whatever is served."""

from __future__ import annotations

import ast
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from cantata_bench.cli import app

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "benchmarks" / "cantata_bench").rglob("*.py"))
MODELS = [p.name for p in (ROOT / "models" / "cantata_models").iterdir() if p.is_dir()]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_it_names_no_model(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    imported = {
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    }
    assert not any(name.startswith("cantata_models") for name in imported)
    assert "solo" in MODELS
    assert not {f'"{name}"' for name in MODELS if name in source.split('"')}


def test_it_is_a_command_of_the_installed_program() -> None:
    (command,) = entry_points(group="cantata.commands", name="bench")
    assert command.load() is app
