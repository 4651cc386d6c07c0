"""A stage's report on its steps, and on the results that it keeps."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.forward_size import ForwardSize


@dataclass(frozen=True, slots=True)
class StepCost:
    """The time of a step that makes n frames, over all its requests: a + b n."""

    fixed_s: float
    """a"""
    frame_s: float
    """b"""

    def seconds(self, frames: int) -> float:
        """How long it takes."""
        return self.fixed_s + self.frame_s * frames


@dataclass(frozen=True, slots=True)
class ForwardCost:
    """The time of a forward: a + b tokens + c pairs."""

    fixed_s: float
    """a"""
    token_s: float
    """b"""
    pair_s: float
    """c"""

    def seconds(self, size: ForwardSize) -> float:
        """How long it takes."""
        return self.fixed_s + self.token_s * size.tokens + self.pair_s * size.pairs


@dataclass(frozen=True, slots=True)
class Histogram:
    """Measurements since the stage process began."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; larger values have a bucket of their own."""
    counts: tuple[int, ...]
    """One for each bucket, one more than there are bounds."""
    total: float
    """The sum of all measurements."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """The steps of one stage process."""

    seconds: Histogram
    """How long each took."""
    batch: Histogram
    """How many requests each produced output for; 0 if it only read prompts."""


@dataclass(frozen=True, slots=True)
class ReuseReport:
    """What a stage computed and what it could reuse, since its process began."""

    encodes: int
    """Inputs that were computed."""
    hits: int
    """Requests that got a kept result."""
    joined: int
    """Requests that shared a computation with another."""
    kept_bytes: int
    """Results kept now."""
