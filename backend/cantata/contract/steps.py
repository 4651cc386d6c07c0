"""What a stage tells of its steps."""

from __future__ import annotations

from dataclasses import dataclass


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
