"""Faults put into a package's source, for tests that show that its goldens catch them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


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
    """Reimport the modules with the fault in one of them, then restore the originals.

    Args:
        mutant: the fault.
        modules: their full names in import order; all are imported.
    """
    kept = {name: sys.modules[name] for name in modules}
    try:
        for name in modules:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            source = Path(spec.origin).read_text(encoding="utf-8")
            if name == mutant.module:
                assert source.count(mutant.right) == 1, "the fault's place has moved"
                source = source.replace(mutant.right, mutant.wrong)
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            exec(compile(source, spec.origin, "exec"), module.__dict__)
        yield
    finally:
        sys.modules.update(kept)
