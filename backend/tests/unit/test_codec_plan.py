"""The codec's plan: whose sound is made next."""

import math
from dataclasses import dataclass
from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from cantata.scheduling.codec_plan import DecodeBatch, PlanLimits, StreamView, plan

PERIOD_S = 0.08
LIMITS = PlanLimits(max_chunk_frames=8, max_batch_frames=32, frame_period_s=PERIOD_S)


def stream(
    slot: int,
    ready: int,
    *,
    started: bool = True,
    deadline: float = 5.0,
    context_frames: int = 0,
    first: int = 1,
) -> StreamView:
    return StreamView(slot, ready, started, deadline, context_frames, first)


def test_nothing_ready_is_no_batch() -> None:
    assert plan([], LIMITS, 0.0) is None
    assert plan([stream(0, 0), stream(1, 0, started=False)], LIMITS, 0.0) is None


def test_first_chunk_goes_ahead_and_is_one_frame() -> None:
    streams = [stream(0, 8, deadline=0.001), stream(1, 3, started=False)]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((1,), 1)


def test_first_chunks_go_together() -> None:
    streams = [stream(0, 1), stream(1, 3, started=False), stream(2, 1, started=False)]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((1, 2), 1)


def test_a_first_packet_holds_as_many_frames_as_its_listener_needs() -> None:
    streams = [
        stream(0, 2, started=False, first=2),
        stream(1, 3, started=False, first=2),
        stream(2, 1, started=False, first=2),  # nothing more will come
        stream(3, 8, deadline=0.001),
    ]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((0, 1), 2)
    assert plan(streams[2:], LIMITS, 0.0) == DecodeBatch((2,), 1)


def test_discarded_context_is_decoded_in_long_chunks() -> None:
    streams = [stream(0, 12, started=False, context_frames=9), stream(1, 8)]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((0, 1), 8)


def test_discarded_context_waits_for_listeners_that_run_dry_soon() -> None:
    new = stream(0, 80, started=False, deadline=math.inf, context_frames=80)
    for reserve_s, first in ((0.15, 1), (0.17, 0)):
        batch = plan([new, stream(1, 1, deadline=reserve_s)], LIMITS, 0.0)
        assert batch is not None
        assert batch.slots[0] == first
    short = stream(1, 30, started=False, deadline=math.inf, context_frames=30)
    assert plan([new, short], LIMITS, 0.0) == DecodeBatch((1, 0), 8)
    late = [new, stream(1, 1, deadline=-0.1), stream(2, 1, started=False)]
    assert plan(late, LIMITS, 0.0) == DecodeBatch((2,), 1)


def test_earliest_deadline_sets_the_length_and_others_join() -> None:
    streams = [
        stream(0, 8, deadline=3.0),
        stream(1, 4, deadline=1.0),
        stream(2, 3, deadline=2.0),  # too short to join a batch of four frames
    ]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((1, 0), 4)


def test_file_renders_yield_to_live_streams() -> None:
    streams = [stream(0, 8, deadline=math.inf), stream(1, 8, deadline=9e9)]
    batch = plan(streams, PlanLimits(8, 8, PERIOD_S), 0.0)
    assert batch == DecodeBatch((1,), 8)


def test_chunks_grow_with_the_reserve() -> None:
    lengths = []
    for reserve_frames in (1, 2, 3, 4, 8, 16, 40):
        batch = plan([stream(0, 20, deadline=reserve_frames * PERIOD_S + 1e-6)], LIMITS, 0.0)
        assert batch is not None
        lengths.append(batch.frames)
    assert lengths == [1, 1, 1, 2, 4, 8, 8]


def test_a_listener_whose_next_frame_is_still_to_come_keeps_batches_short() -> None:
    """A batch cannot be interrupted: while a long one runs, that frame would come too late."""
    far_ahead = stream(0, 8, deadline=30.0)
    assert plan([far_ahead], LIMITS, 0.0) == DecodeBatch((0,), 8)
    nearly_dry = stream(1, 0, deadline=PERIOD_S)
    assert plan([far_ahead, nearly_dry], LIMITS, 0.0) == DecodeBatch((0,), 1)


def test_a_stream_that_waits_for_the_talker_delays_no_other() -> None:
    streams = [stream(0, 8, deadline=30.0), stream(1, 0, deadline=-4.0)]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch((0,), 8)


def test_once_sound_is_late_all_who_wait_share_a_full_batch() -> None:
    streams = [stream(slot, 8, deadline=-0.5 + slot) for slot in range(16)]
    assert plan(streams, LIMITS, 0.0) == DecodeBatch(tuple(range(16)), 2)


@st.composite
def views(draw: st.DrawFn) -> list[StreamView]:
    count = draw(st.integers(0, 20))
    return [
        stream(
            slot,
            draw(st.integers(0, 30)),
            started=draw(st.booleans()),
            deadline=draw(st.floats(-10, 10) | st.just(math.inf)),
            context_frames=draw(st.sampled_from((0, 0, 3, 40))),
            first=draw(st.integers(1, 3)),
        )
        for slot in range(count)
    ]


def turn(stream: StreamView) -> tuple[int, float]:
    if not stream.started and stream.context_frames_left:
        return 2, stream.context_frames_left
    if not stream.started:
        return 0, stream.deadline_s
    return 1 if stream.deadline_s < 2 * PERIOD_S else 3, stream.deadline_s


@given(views(), st.integers(1, 16), st.integers(1, 64))
def test_every_batch_is_possible_bounded_and_starts_with_the_most_urgent(
    streams: list[StreamView], max_chunk: int, max_batch: int
) -> None:
    batch = plan(streams, PlanLimits(max_chunk, max_batch, PERIOD_S), 0.0)
    ready = {s.slot: s for s in streams if s.ready_frames}
    if not ready:
        assert batch is None
        return
    assert batch is not None
    assert len(set(batch.slots)) == len(batch.slots) >= 1
    assert all(ready[slot].ready_frames >= batch.frames for slot in batch.slots)
    assert 1 <= batch.frames <= max_chunk
    assert len(batch.slots) == 1 or len(batch.slots) * batch.frames <= max_batch
    most_urgent = min(ready.values(), key=lambda s: (*turn(s), s.slot))
    assert batch.slots[0] == most_urgent.slot


@dataclass
class Spoken:
    """One stream of the small world below: frames come at a pace, and a listener plays them."""

    begins_s: float
    frames: int
    batch: bool
    decoded: int = 0
    first_s: float | None = None
    late_s: float = 0.0

    def arrived(self, now_s: float, step_s: float) -> int:
        return max(0, min(self.frames, int((now_s - self.begins_s) / step_s)))

    def view(self, slot: int, now_s: float, step_s: float) -> StreamView:
        ready = self.arrived(now_s, step_s) - self.decoded
        deadline_s = math.inf
        if self.first_s is not None and not self.batch:
            deadline_s = self.first_s + self.decoded * PERIOD_S
        return StreamView(slot, ready, self.batch or self.first_s is not None, deadline_s)

    def take(self, frames: int, now_s: float) -> None:
        if self.first_s is None:
            self.first_s = now_s
        else:
            self.late_s = max(self.late_s, now_s - (self.first_s + self.decoded * PERIOD_S))
        self.decoded += frames


def decode_all(streams: list[Spoken], step_s: float, fixed_s: float, frame_s: float) -> float:
    """Run the plan until every stream is decoded; returns the time."""
    now_s = 0.0
    while any(s.decoded < s.frames for s in streams):
        open_now = [
            s.view(slot, now_s, step_s)
            for slot, s in enumerate(streams)
            if s.decoded < s.frames and s.begins_s <= now_s
        ]
        batch = plan(open_now, LIMITS, now_s)
        if batch is None:
            now_s += 0.0005
            continue
        now_s += fixed_s + frame_s * batch.frames * len(batch.slots)
        for slot in batch.slots:
            streams[slot].take(batch.frames, now_s)
    return now_s


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_feasible_load_plays_without_gaps_or_starvation(data: st.DataObject) -> None:
    """Feasible: one stream begins in a frame period, and a frame's way through a talker's step and
    three of the decoder's batches, the one that is under way, a first chunk and its own, takes less
    than a frame period."""
    count = data.draw(st.integers(1, 16), label="streams")
    step_s = PERIOD_S * data.draw(st.floats(0.1, 0.4), label="talker")
    batch_s = (PERIOD_S - step_s) / 3 * data.draw(st.floats(0.1, 0.95), label="decoder")
    fixed_s = batch_s * data.draw(st.floats(0.05, 0.9), label="fixed")
    frame_s = (batch_s - fixed_s) / count
    begins_s = accumulate(data.draw(st.floats(PERIOD_S, 0.2)) for _ in range(count))
    streams = [
        Spoken(
            begins_s=begins,
            frames=data.draw(st.integers(1, 60)),
            batch=data.draw(st.sampled_from((False, False, False, True))),
        )
        for begins in begins_s
    ]
    ended_s = decode_all(streams, step_s, fixed_s, frame_s)
    assert all(s.late_s < 0.001 for s in streams if not s.batch)
    frames = sum(s.frames for s in streams)
    assert ended_s < streams[-1].begins_s + 60 * step_s + frames * (fixed_s + frame_s) + 1
