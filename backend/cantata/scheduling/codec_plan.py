"""Which streams a codec stage decodes next.

Earliest playback deadline first, first chunks ahead of all, equal lengths together. Nothing here
knows a model, a tensor or the time: deadlines come in as numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the plan needs to know of one stream."""

    slot: int
    ready_frames: int
    """Frames that have arrived, are not decoded yet, and that the listener has credit for."""
    started: bool
    """Whether the listener has sound already; one that has none waits for its first packet."""
    deadline_s: float
    """When the listener runs dry, on any monotonic clock; infinity for file renders."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Bounds of one batch."""

    max_chunk_frames: int
    """Frames of one stream at most."""
    max_batch_frames: int
    """Rows times frames at most."""


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """Decode the next `frames` frames of each of these slots in one call."""

    slots: tuple[int, ...]
    frames: int


def plan(streams: Sequence[StreamView], limits: PlanLimits) -> DecodeBatch | None:
    """Choose the next batch; None when no stream has a frame to decode.

    The most urgent stream sets the number of frames: one for a first chunk, so that sound starts at
    once, else the largest power of two that it has ready (few distinct shapes, and chunks that
    grow by themselves when frames pile up under load). Streams with as many frames ready join
    in order of urgency until the batch is full.
    """
    waiting = sorted((s for s in streams if s.ready_frames > 0), key=_urgency)
    if not waiting:
        return None
    frames = _chunk_frames(waiting[0], limits)
    rows = max(1, limits.max_batch_frames // frames)
    # A newcomer's single frame may be joined by anyone; longer chunks only by streams under way.
    joining = [s for s in waiting if _chunk_frames(s, limits) >= frames]
    return DecodeBatch(tuple(s.slot for s in joining[:rows]), frames)


def _urgency(stream: StreamView) -> tuple[bool, float, int]:
    return stream.started, stream.deadline_s, stream.slot


def _chunk_frames(stream: StreamView, limits: PlanLimits) -> int:
    if not stream.started:
        return 1
    frames = min(stream.ready_frames, limits.max_chunk_frames)
    return 1 << (frames.bit_length() - 1)
