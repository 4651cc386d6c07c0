"""A picture's tokens, and how many places they and a text may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

POSITIONS = 4096
"""On either side of 0, of text and pictures; the reference has no more either."""


@dataclass(frozen=True, slots=True)
class Grid:
    height: int
    width: int

    @property
    def tokens(self) -> int:
        return self.height * self.width


def first_text_position(grids: Sequence[Grid]) -> int:
    """Behind the largest of the pictures, whose middles are at 0."""
    return max(max(grid.height // 2, grid.width // 2) for grid in grids)
