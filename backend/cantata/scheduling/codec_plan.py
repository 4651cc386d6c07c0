"""Chooses the streams that a codec stage decodes next.

Earliest playback deadline first, first chunks before all others, a new stream's context behind
listeners that run dry soon, the shortest context first, chunks that grow with the listeners'
reserves, equal lengths together. Where a step's time hardly grows with its frames, as on a GPU,
streams with deep reserves wait until several frames of each are there, so that there are fewer
steps. Knows no model and no tensor and reads no clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cantata.contract.process.messages import StepCost

SOON_PERIODS = 2.0
"""A listener with fewer frame periods than this left to play goes before a new stream's context,
which may be minutes of frames. It is more than what a listener must have for another request to
start."""
FLAT = 1.5
"""A step of several frames costs as much as one of a single frame if it takes at most this many
times as long. Runs of one step differ by a third."""


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
    more_soon: bool = False
    """Whether another frame comes with the next delivery, as far as anyone knows."""

    @property
    def may_gather(self) -> bool:
        """Whether its frames could wait for the next ones."""
        return self.started and self.more_soon


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


def plan(
    streams: Sequence[StreamView],
    limits: PlanLimits,
    now_s: float,
    cost: StepCost | None = None,
) -> DecodeBatch | None:
    """Choose the next batch; None when no stream has a frame to decode now.

    The most urgent stream that does not wait for more frames sets the number of frames: the largest
    power of two (few distinct shapes) that it has ready and that its first packet is to hold, so
    that sound starts at once, or that `_find_max_frames` allows. Streams with as many frames ready
    join in order of urgency until the batch is full, also those that wait for more. First chunks
    are joined only by first chunks: theirs is the shortest batch.

    Args:
        streams: all that are held, those with nothing to decode too: a batch cannot be interrupted,
            and they may need the next one.
        limits: of one batch.
        now_s: on the deadlines' clock.
        cost: of this device's steps, for streams to wait if that saves steps. None: none waits.
    """
    soon_s = now_s + SOON_PERIODS * limits.frame_period_s
    waiting = sorted(
        (s for s in streams if s.ready_frames > 0), key=lambda stream: _rank(stream, soon_s)
    )
    gathering = _FrameGathering.over(streams, limits, cost)
    first = next((s for s in waiting if gathering.find_due_s(s) <= now_s), None)
    if first is None:
        return None
    patience = gathering.find_max_frames(streams, limits, now_s)
    if patience is None:
        patience = _find_max_frames(streams, waiting, limits, now_s)
    lengths = {s.slot: _choose_chunk_frames(s, patience, limits) for s in waiting}
    frames = lengths[first.slot]
    rows = max(1, limits.max_batch_frames // frames)
    joining = [s for s in waiting if s is not first and lengths[s.slot] >= frames]
    if _is_first_chunk(first):
        joining = [s for s in joining if _is_first_chunk(s)]
    return DecodeBatch((first.slot, *(s.slot for s in joining[: rows - 1])), frames)


def find_due_s(streams: Sequence[StreamView], limits: PlanLimits, cost: StepCost | None) -> float:
    """When `plan` chooses a batch even if nothing arrives: minus infinity if it does already,
    infinity if no frame is there."""
    gathering = _FrameGathering.over(streams, limits, cost)
    return min((gathering.find_due_s(s) for s in streams if s.ready_frames > 0), default=math.inf)


def count_gathered_frames(limits: PlanLimits, cost: StepCost | None, listeners: int) -> int:
    """Frames of each stream that one step is worth waiting for: the largest power of two for which
    a stream's step costs as much as for a single frame, and a batch holds all listeners. 1: none.
    """
    if cost is None:
        return 1
    flat = (FLAT * cost.seconds(1) - cost.fixed_s) / cost.frame_s
    room = limits.max_batch_frames // max(1, listeners)
    return 1 << (max(1, min(int(flat), room, limits.max_chunk_frames)).bit_length() - 1)


@dataclass(frozen=True, slots=True)
class _FrameGathering:
    """Which streams wait for more frames, and until when.

    All that wait are decoded together: once each has `frames`, or one has twice as many, because a
    step serves many streams as fast as one. WHY not each by itself: streams begin at different
    times, so with eight of them there would be a step for every frame again.
    """

    frames: int
    """Of each stream in a batch; 1: none waits."""
    batch_s: float
    """The longest batch."""
    lead_s: float
    """How long before its listener runs dry a stream stops waiting."""
    is_full: bool
    """Each stream that waits has enough."""

    @classmethod
    def over(
        cls, streams: Sequence[StreamView], limits: PlanLimits, cost: StepCost | None
    ) -> _FrameGathering:
        if cost is None:
            return _NO_GATHERING
        ready = [stream.ready_frames for stream in streams if stream.may_gather]
        frames = count_gathered_frames(limits, cost, len(ready))
        if frames == 1 or not ready:
            return _NO_GATHERING
        batch_s = cost.seconds(limits.max_batch_frames)
        # Behind a batch that has just begun, and through its own.
        lead_s = SOON_PERIODS * limits.frame_period_s + 2 * batch_s
        return cls(frames, batch_s, lead_s, min(ready) >= frames)

    def find_due_s(self, stream: StreamView) -> float:
        """When a stream that has frames is decoded even if nothing arrives."""
        if self.frames == 1 or not stream.may_gather:
            return -math.inf
        if self.is_full or stream.ready_frames >= 2 * self.frames:
            return -math.inf
        return stream.deadline_s - self.lead_s

    def find_max_frames(
        self, streams: Sequence[StreamView], limits: PlanLimits, now_s: float
    ) -> int | None:
        """As the function `_find_max_frames`, if the longest batch makes no listener run dry."""
        if self.frames == 1:
            return None
        # Listeners that have run dry with nothing to decode wait for the talker, not for the codec.
        counted = (s for s in streams if s.started and (s.ready_frames or s.deadline_s > now_s))
        is_safe = all(s.deadline_s - now_s >= 2 * self.batch_s for s in counted)
        return limits.max_chunk_frames if is_safe else None


_NO_GATHERING = _FrameGathering(1, 0.0, 0.0, is_full=False)


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
