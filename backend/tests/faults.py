"""Faults that are put into loaded models, each with the scenarios that detect it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

L = TypeVar("L")
Test = TypeVar("Test", bound=Callable[..., Any])
Inject = Callable[[L, pytest.MonkeyPatch], None]


class Faults(Generic[L]):
    """A list of faults; calling it registers one."""

    def __init__(self) -> None:
        self.cases: list[tuple[str, Inject[L]]] = []
        """A scenario that detects a fault, and the function that injects it."""

    def __call__(self, *scenarios: str) -> Callable[[Inject[L]], Inject[L]]:
        """Register a fault that each of these scenarios detects."""

        def register(inject: Inject[L]) -> Inject[L]:
            self.cases.extend((scenario, inject) for scenario in scenarios)
            return inject

        return register

    @property
    def scenarios(self) -> list[str]:
        """All that detect one."""
        return sorted({scenario for scenario, _ in self.cases})

    def each(self, test: Test) -> Test:
        """Run a test for each fault: it takes `name` of the scenario, and `inject`."""
        ids = [f"{inject.__name__} in {name}" for name, inject in self.cases]
        cases = pytest.mark.parametrize(("name", "inject"), self.cases, ids=ids)
        return pytest.mark.thorough(every=6)(cases(test))  # type: ignore[no-any-return]
