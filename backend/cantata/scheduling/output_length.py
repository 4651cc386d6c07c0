"""Estimates how long an output will be: the running mean of past outputs, since `max_tokens` says
little. Nothing here knows a model or reads a clock."""

from __future__ import annotations

_FIRST = 256.0
"""Steps of a text before any has ended."""
_NEW_WEIGHT = 0.2
"""Weight of the latest text in the mean."""


class OutputLengthEstimator:
    """The mean length of texts so far, in steps: a token is one, and so is a piece that is read."""

    def __init__(self) -> None:
        self._mean = _FIRST

    def ended(self, steps: int) -> None:
        """A text had so many."""
        self._mean += _NEW_WEIGHT * (steps - self._mean)

    def left(self, most: int) -> int:
        """Steps that a text still has, as far as one can tell: however long it is already, it goes
        on for as long as texts usually are.

        Args:
            most: that it may have, at least 1.
        """
        return max(1, min(most, round(self._mean)))
