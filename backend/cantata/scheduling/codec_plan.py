"""Chooses the streams that a codec stage decodes next.

Earliest playback deadline first, first chunks before all others, a new stream's context behind
listeners that run dry soon, the shortest context first, chunks that grow with the listeners'
reserves, equal lengths together. Knows no model and no tensor and reads no clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

SOON_PERIODS = 2.0
"""A listener with fewer frame periods than this left to play goes before a new stream's context,
which may be minutes of frames. It is more than what a listener must have for another request to
start."""


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the plan needs to know about one stream."""

    slot: int
    ready_frames: int
    """Frames that have arrived, are not decoded, and are covered by the listener's credit."""
    started: bool
    """Whether the listener has sound already; otherwise it waits for its first packet."""
    deadline_s: float
    """When the listener runs dry, on any monotonic clock; infinity for file renders."""
    context_frames_left: int = 0
    """Frames at its beginning that are decoded only as context; their sound is dropped."""
    first_frames: int = 1
    """Frames in its first packet, if that many come."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Limits of one batch."""

    max_chunk_frames: int
    """Most frames of one stream."""
    max_batch_frames: int
    """Most rows times frames."""
    frame_period_s: float
    """Seconds of sound in one frame."""


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """Decode the next `frames` frames of each of these slots in one call."""

    slots: tuple[int, ...]
    frames: int


def plan(streams: Sequence[StreamView], limits: PlanLimits, now_s: float) -> DecodeBatch | None:
    """Choose the next batch; None when no stream has a frame to decode.

    The most urgent stream sets the number of frames: the largest power of two (few distinct
    shapes) that it has ready and that its first packet is to hold, so that sound starts at once, or
    that `_find_max_frames` allows. Streams with as many frames ready join in order of urgency until
    the batch is full. First chunks are joined only by first chunks: theirs is the shortest batch.

    Args:
        streams: all that are held, those with nothing to decode too: a batch cannot be interrupted,
            and they may need the next one.
        limits: of one batch.
        now_s: on the deadlines' clock.
    """
    soon_s = now_s + SOON_PERIODS * limits.frame_period_s
    waiting = sorted(
        (s for s in streams if s.ready_frames > 0), key=lambda stream: _rank(stream, soon_s)
    )
    if not waiting:
        return None
    patience = _find_max_frames(streams, waiting, limits, now_s)
    lengths = {s.slot: _choose_chunk_frames(s, patience, limits) for s in waiting}
    frames = lengths[waiting[0].slot]
    rows = max(1, limits.max_batch_frames // frames)
    if _is_first_chunk(waiting[0]):
        joining = [s for s in waiting if _is_first_chunk(s) and lengths[s.slot] >= frames]
    else:
        joining = [s for s in waiting if lengths[s.slot] >= frames]
    return DecodeBatch(tuple(s.slot for s in joining[:rows]), frames)


def _rank(stream: StreamView, soon_s: float) -> tuple[int, float, int]:
    if not stream.started and stream.context_frames_left:
        return 2, stream.context_frames_left, stream.slot
    if not stream.started:
        return 0, stream.deadline_s, stream.slot
    return 1 if stream.deadline_s < soon_s else 3, stream.deadline_s, stream.slot


def _find_max_frames(
    streams: Sequence[StreamView], waiting: Sequence[StreamView], limits: PlanLimits, now_s: float
) -> int:
    """Most frames per row that make no other listener run dry.

    While a stage keeps up, a chunk of n frames takes less time than n frames last. So the listener
    with the least in reserve bounds them, and half of its reserve is left for its own batch. If
    sound is already late, only throughput helps: all waiting streams share a full batch.
    """
    if any(s.deadline_s <= now_s for s in waiting if s.started):
        frames = limits.max_batch_frames // len(waiting)
    else:
        # Listeners that have run dry with nothing to decode wait for the talker, not for the codec.
        reserves_s = (s.deadline_s - now_s for s in streams if s.started and s.deadline_s > now_s)
        min_s = min(reserves_s, default=math.inf)
        frames = int(min(min_s / limits.frame_period_s / 2, limits.max_chunk_frames))
    return max(1, min(frames, limits.max_chunk_frames))


def _is_first_chunk(stream: StreamView) -> bool:
    """Whether the stream's next frame is the first that its listener receives."""
    return not stream.started and not stream.context_frames_left


def _choose_chunk_frames(stream: StreamView, patience: int, limits: PlanLimits) -> int:
    if _is_first_chunk(stream):
        most = min(stream.first_frames, limits.max_chunk_frames)
    else:
        most = patience if stream.started else min(patience, stream.context_frames_left)
    frames = min(stream.ready_frames, most)
    return 1 << (frames.bit_length() - 1)
