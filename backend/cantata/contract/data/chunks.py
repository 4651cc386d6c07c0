"""What crosses an edge. One payload type each: no tensor-or-list anywhere.

Letters: T frames, Q codebooks, N samples, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When one word of a request is heard."""

    index: int
    """Position in `PipelineRequest.words`."""
    start_s: float
    """Seconds from the request's first sample."""
    end_s: float


@dataclass(frozen=True, slots=True)
class Milestone:
    """When a step on the way to a request's first sound was done."""

    step: str
    """`text`, `admit`, or the name of a stage whose first chunk left."""
    at_s: float
    """By the machine's monotonic clock, which all its processes share."""


@dataclass(frozen=True, slots=True)
class FrameChunk:
    """New codec frames of one request, from a talker to a codec."""

    request_id: str
    index: int
    """Position in the request's stream of chunks on this edge, from 0 without gaps."""
    codes: NDArray[np.int32]
    """[T, Q]; T may be 0 only when `final`."""
    final: bool
    """No chunk of this request follows."""
    words: tuple[WordTiming, ...] = ()
    """New word times, in order. Each word is sent once, no later than its sound."""
    context: NDArray[np.int32] | None = None
    """[C, Q]: frames before these, on a request's first chunk only. They are decoded as
    context; their sound is discarded."""
    milestones: tuple[Milestone, ...] = ()
    """Of the stages up to here; on a request's first chunk only. The stage loop passes them on, not
    the stage."""


@dataclass(frozen=True, slots=True)
class PcmChunk:
    """New samples of one request, from a codec to the api: delta, never cumulative."""

    request_id: str
    index: int
    """Position in the request's stream of chunks on this edge, from 0 without gaps."""
    samples: NDArray[np.float32]
    """[N, C], in -1..1; N may be 0 only when `final`."""
    final: bool
    words: tuple[WordTiming, ...] = ()
    """From the frames."""
    milestones: tuple[Milestone, ...] = ()
    """As with frames."""


Chunk = FrameChunk | PcmChunk


def concatenate(chunks: list[Chunk]) -> Chunk:
    """Join consecutive chunks of one request into a single one, index 0 (batch mode).

    Raises:
        ValueError: `chunks` is empty or mixes requests or types.
    """
    if not chunks:
        raise ValueError("no chunks to join")
    first, last = chunks[0], chunks[-1]
    words = tuple(word for c in chunks for word in c.words)
    if any(c.request_id != first.request_id or type(c) is not type(first) for c in chunks):
        raise ValueError("chunks of different requests or types cannot be joined")
    if isinstance(first, FrameChunk):
        codes = np.concatenate([c.codes for c in chunks if isinstance(c, FrameChunk)])
        return FrameChunk(first.request_id, 0, codes, last.final, words, first.context)
    samples = np.concatenate([c.samples for c in chunks if isinstance(c, PcmChunk)])
    return PcmChunk(first.request_id, 0, samples, last.final, words)
