"""How much a denoising network computes at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForwardSize:
    """How much a forward of a denoising network computes, over all its rows (a row is one branch
    of one picture: its text, its noise, its references)."""

    tokens: int
    pairs: int
    """Pairs of tokens that attend to each other: the sum of each row's tokens squared."""

    def __add__(self, other: ForwardSize) -> ForwardSize:
        return ForwardSize(self.tokens + other.tokens, self.pairs + other.pairs)
