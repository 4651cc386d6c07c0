"""Chunks, which cross the edges; each has one payload of a closed set of types.

Letters: T frames, Q codebooks, E columns, N samples, C channels, H height, W width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.transcripts import TranscriptUpdate


@dataclass(frozen=True, slots=True)
class WordTiming:
    """When one word of a request is heard."""

    index: int
    """Index in `PipelineRequest.words`."""
    start_s: float
    """Seconds from the request's first sample."""
    end_s: float


@dataclass(frozen=True, slots=True)
class Milestone:
    """When a step on the way to a request's first sound was done."""

    step: str
    """`text`, `admit`, or the name of the stage whose first chunk left."""
    at_s: float
    """Time by the machine's monotonic clock, which all its processes share."""


@dataclass(frozen=True, slots=True)
class Codes:
    """Codec frames."""

    values: NDArray[np.int32]
    """[T, Q]; T may be 0 only in a final chunk."""
    context_frames: int = 0
    """How many of the first frames only prime the decoder, which drops their sound. On a request's
    first chunk only."""
    words: tuple[WordTiming, ...] = ()
    """New word times, in order. Each word is sent once, no later than its sound."""
    logprobs: tuple[float, ...] = ()
    """Natural logarithms of the probabilities of the codes 0 after the context, one for each frame;
    empty if they were not asked for (`SamplingOptions.logprobs`)."""
    top_logprobs: tuple[tuple[tuple[int, float], ...], ...] = ()
    """For each of `logprobs`, the likeliest codes 0 with theirs, the likeliest first."""
    cached_positions: int = 0
    """Positions of the prompt that were read from memory. On a request's first chunk only."""

    @property
    def units(self) -> int:
        """Number of frames that are heard."""
        return len(self.values) - self.context_frames

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """Join consecutive payloads, at least one."""
        values = np.concatenate([part.values for part in parts])
        logprobs = tuple(one for part in parts for one in part.logprobs)
        tops = tuple(one for part in parts for one in part.top_logprobs)
        first = parts[0]
        return cls(
            values,
            first.context_frames,
            _collect_words(parts),
            logprobs,
            tops,
            first.cached_positions,
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Vectors, such as embeddings, hidden states or latents. The meaning of E's columns is up to
    the two stages."""

    values: NDArray[np.float32]
    """[T, E]; T may be 0 only in a final chunk."""
    context_frames: int = 0
    """For latents: first rows that only prime the decoder, as in `Codes.context_frames`."""
    words: tuple[WordTiming, ...] = ()
    """New word times of latents, as in `Codes.words`."""

    @property
    def units(self) -> int:
        """Number of rows that are heard."""
        return len(self.values) - self.context_frames

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        values = np.concatenate([part.values for part in parts])
        return cls(values, parts[0].context_frames, _collect_words(parts))


@dataclass(frozen=True, slots=True)
class Pcm:
    """New samples of sound; earlier ones are not repeated."""

    samples: NDArray[np.float32]
    """[N, C], in -1..1; N may be 0 only in a final chunk."""
    words: tuple[WordTiming, ...] = ()
    """Word times that came with the frames."""

    @property
    def units(self) -> int:
        """Number of samples per channel."""
        return len(self.samples)

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        return cls(np.concatenate([part.samples for part in parts]), _collect_words(parts))


@dataclass(frozen=True, slots=True)
class Image:
    """A whole picture."""

    pixels: NDArray[np.uint8]
    """[H, W, 3] RGB."""

    @property
    def units(self) -> int:
        return 1

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The last of the payloads, at least one: a picture replaces the one before."""
        return parts[-1]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a picture's denoising."""

    pixels: NDArray[np.uint8]
    """[H, W, 3] RGB: a preview of the picture, smaller than it; [0, 0, 3]: no preview of this
    step."""
    step: int
    """Steps that are done, 0 to `steps`."""
    steps: int

    @property
    def units(self) -> int:
        return 1

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The last of the payloads, at least one."""
        return parts[-1]


Payload = Codes | Rows | Pcm | Image | Progress | TranscriptUpdate
P_co = TypeVar("P_co", bound=Payload, covariant=True)


@dataclass(frozen=True, slots=True)
class Chunk(Generic[P_co]):
    """A new piece of one request's output at one port of a stage."""

    request_id: str
    port: str
    """Name of the port in `PipelineSpec`, of the stage that made the chunk."""
    index: int
    """Index among the request's chunks at this port, from 0 without gaps."""
    payload: P_co
    final: bool
    """No chunk of this request follows at this port."""
    milestones: tuple[Milestone, ...] = ()
    """Milestones of the stages so far, on a request's first chunk only. The stage loop passes them
    on, not the stage."""


def to_array(payload: Payload) -> NDArray[Any]:
    """The array of a payload: its first field."""
    match payload:
        case Pcm():
            return payload.samples
        case Image() | Progress():
            return payload.pixels
        case Codes() | Rows():
            return payload.values
        case TranscriptUpdate():
            return payload.tokens


def concatenate(chunks: Sequence[Chunk[Payload]]) -> Chunk[Payload]:
    """Join consecutive chunks of one request and port into a single one, index 0 (batch mode).
    Raises ValueError: `chunks` is empty or mixes requests, ports or payloads."""
    if not chunks:
        raise ValueError("no chunks to join")
    first, last = chunks[0], chunks[-1]
    if len({(chunk.request_id, chunk.port, type(chunk.payload)) for chunk in chunks}) > 1:
        raise ValueError("chunks of different requests, ports or payloads cannot be joined")
    kind: Any = type(first.payload)
    payload = kind.join([chunk.payload for chunk in chunks])
    return Chunk(first.request_id, first.port, 0, payload, last.final)


def _collect_words(parts: Sequence[Codes | Rows | Pcm]) -> tuple[WordTiming, ...]:
    return tuple(word for part in parts for word in part.words)
