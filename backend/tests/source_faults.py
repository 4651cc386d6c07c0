"""Faults put into a package's source, for tests that show that its goldens catch them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.abc import ExecutionLoader
from pathlib import Path
from types import CodeType

import pytest


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: a piece of source that occurs once in its module, and its replacement."""

    module: str
    """Its full name."""
    right: str
    wrong: str
    check: Callable[[Path], None]


def mutants(
    module: str, check: Callable[[Path], None], *faults: tuple[str, str]
) -> tuple[Mutant, ...]:
    """Faults of one module that one check must catch."""
    return tuple(Mutant(module, right, wrong, check) for right, wrong in faults)


@contextmanager
def injected(mutant: Mutant, modules: Sequence[str]) -> Iterator[None]:
    """Reimport what the fault can reach, with the fault in it, then restore the originals.

    Args:
        mutant: the fault.
        modules: full names in import order; all are imported. Those in front of the fault's do not
            import it, and stay.
    """
    reached = modules[modules.index(mutant.module) :]
    kept = {name: sys.modules[name] for name in reached}
    try:
        for name in reached:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            code = _faulty(mutant) if name == mutant.module else _right(name)
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            exec(code, module.__dict__)
        yield
    finally:
        sys.modules.update(kept)


def _faulty(mutant: Mutant) -> CodeType:
    loader = _get_loader(mutant.module)
    source = loader.get_source(mutant.module)
    assert source is not None
    assert source.count(mutant.right) == 1, "the fault's place has moved"
    return compile(
        source.replace(mutant.right, mutant.wrong), loader.get_filename(mutant.module), "exec"
    )


@cache
def _right(module: str) -> CodeType:
    code = _get_loader(module).get_code(module)
    assert code is not None
    return code


def _get_loader(module: str) -> ExecutionLoader:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert isinstance(spec.loader, ExecutionLoader)
    return spec.loader


def each_mutant(mutants: Sequence[Mutant]) -> pytest.MarkDecorator:
    """Run a test for each fault: it takes `mutant`."""
    ids = [f"{mutant.module}: {mutant.wrong.strip()}" for mutant in mutants]
    return pytest.mark.parametrize("mutant", mutants, ids=ids)


def assert_caught(mutant: Mutant, modules: Sequence[str], folder: Path) -> None:
    """Check that a comparison of arrays fails with a fault in the source.

    Args:
        mutant: the fault, and its check.
        modules: as in `injected`.
        folder: for the check.
    """
    for name in modules:
        importlib.import_module(name)
    different = pytest.raises(AssertionError, match=r"Not equal|not equal|Arrays are not")
    with injected(mutant, modules), different:
        mutant.check(folder)
