"""A tensor that changes from step to step, foreseen by a Taylor series through its last values.

Source: TaylorSeer (arXiv 2503.06923), whose derivatives are divided differences of full steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Series:
    """The last value and its derivatives by step."""

    last: int = 0
    """The step of the last value."""
    terms: tuple[torch.Tensor, ...] = ()
    """The value, its first derivative, and so on."""

    @property
    def is_empty(self) -> bool:
        """Whether there is no value yet."""
        return not self.terms

    def noted(self, step: int, value: torch.Tensor, order: int) -> Series:
        """The series with the value of a later step, up to the derivative `order`."""
        terms = [value]
        for before in self.terms[:order]:
            terms.append((terms[-1] - before) / (step - self.last))
        return Series(step, tuple(terms))

    def at(self, step: int) -> torch.Tensor:
        """The value foreseen for a step; there is one value at least."""
        distance = step - self.last
        foreseen = self.terms[0]
        for power, term in enumerate(self.terms[1:], start=1):
            foreseen = foreseen + term * (distance**power / math.factorial(power))
        return foreseen


EMPTY = Series()
