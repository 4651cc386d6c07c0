"""What the wheel holds: all that serving imports, and nothing that only developers need."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

ROOT = Path(__file__).parents[3]
WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]
EXCLUDED = GitIgnoreSpec.from_lines(WHEEL["exclude"])


def list_modules() -> Iterator[tuple[str, Path, bool]]:
    """Name, file, and whether the wheel has it."""
    for package in map(Path, WHEEL["packages"]):
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT / package.parent).with_suffix("").parts
            shipped = not EXCLUDED.match_file(path.relative_to(ROOT))
            yield ".".join(parts).removesuffix(".__init__"), path, shipped


@pytest.fixture(scope="module")
def modules() -> dict[str, tuple[Path, bool]]:
    return {name: (path, shipped) for name, path, shipped in list_modules()}


def test_what_only_developers_need_is_left_out(modules: dict[str, tuple[Path, bool]]) -> None:
    shipped = {name for name, (_, is_shipped) in modules.items() if is_shipped}
    assert {"cantata.cli.app", "cantata_models.solo.plugin", "cantata_web"} <= shipped
    words = ("tests", "training", "goldens", "random_checkpoint", "random_rules", "train_")
    assert not {name for name in shipped for word in words if f".{word}" in name}


def test_what_ships_imports_nothing_that_does_not(modules: dict[str, tuple[Path, bool]]) -> None:
    missing = []
    for name, (path, shipped) in modules.items():
        if not shipped:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            else:
                continue
            missing += [
                f"{name} imports {target}"
                for target in targets
                if target in modules and not modules[target][1]
            ]
    assert missing == []
