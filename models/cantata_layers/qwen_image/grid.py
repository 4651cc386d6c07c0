"""A picture's tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """How many there are on each side."""

    height: int
    width: int

    @property
    def tokens(self) -> int:
        """In all."""
        return self.height * self.width
