"""A stage's report on its steps, and on its cache of results."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.forward_size import ForwardSize


@dataclass(frozen=True, slots=True)
class StepCost:
    """The time of a step that makes n frames, over all its requests: a + b n."""

    fixed_s: float
    """a, in seconds."""
    frame_s: float
    """b, in seconds per frame."""

    def seconds(self, frames: int) -> float:
        """The time of a step of this size."""
        return self.fixed_s + self.frame_s * frames


@dataclass(frozen=True, slots=True)
class ForwardCost:
    """The time of a forward: a + b tokens + c pairs."""

    fixed_s: float
    """a, in seconds."""
    token_s: float
    """b, in seconds per token."""
    pair_s: float
    """c, in seconds per pair."""

    def seconds(self, size: ForwardSize) -> float:
        """The time of a forward of this size."""
        return self.fixed_s + self.token_s * size.tokens + self.pair_s * size.pairs


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of measurements since the stage process began."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; larger values have a bucket of their own."""
    counts: tuple[int, ...]
    """One for each bucket, one more than there are bounds."""
    total: float
    """The sum of all measurements."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """Histograms of the steps of one stage process."""

    seconds: Histogram
    """Duration of each step."""
    batch: Histogram
    """Number of requests that each step produced output for; 0 if it only read prompts."""


@dataclass(frozen=True, slots=True)
class ReuseReport:
    """What a stage computed and what it reused, since its process began."""

    encodes: int
    """Inputs that were computed."""
    hits: int
    """Requests whose result was cached."""
    joined: int
    """Requests that shared a computation with another request."""
    kept_bytes: int
    """Bytes of results in the cache now."""
