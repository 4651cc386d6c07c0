"""Whether a row's float32 result depends on the rows that are computed with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import torch

Product: TypeAlias = "Callable[[torch.Tensor], torch.Tensor]"
"""[R, in] -> [R, out]: a matrix product."""


@dataclass(frozen=True, slots=True)
class NumericsReport:
    """What a model found out about matrix products on this machine's CPU."""

    exact: bool
    """A request gets the same samples alone and in a batch."""
    found: str
    """The kernels and padding in use, or the products that differ."""


def find_differing_counts(
    product: Product, row: torch.Tensor, counts: Iterable[int], among: int
) -> list[int]:
    """The numbers of rows for which a row's result differs from its result in a large batch.

    Args:
        row: [in], repeated to the number of rows, so that every place in them is examined.
        among: the number of rows whose first result is right.
    """
    rows = row.repeat(max(among, *(counts := list(counts))), 1)
    right = product(rows[:among])[0]
    return [count for count in counts if not bool((product(rows[:count]) == right).all())]
