"""What a stage tells of its steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a step takes that makes n frames, of all its requests together: a + b n."""

    fixed_s: float
    """a"""
    frame_s: float
    """b"""

    def seconds(self, frames: int) -> float:
        """How long it takes."""
        return self.fixed_s + self.frame_s * frames


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often what was measured, since the stage process began."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; what is above the last has a bucket of its own."""
    counts: tuple[int, ...]
    """One for each bucket, one more than there are bounds."""
    total: float
    """Of all that was measured."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """The steps of one stage process."""

    seconds: Histogram
    """How long each took."""
    batch: Histogram
    """How many requests each made something for; none where it only read prompts."""
