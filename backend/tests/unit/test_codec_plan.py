"""The codec's plan: whose sound is made next."""

import math

from hypothesis import given
from hypothesis import strategies as st

from cantata.scheduling.codec_plan import DecodeBatch, PlanLimits, StreamView, plan

LIMITS = PlanLimits(max_chunk_frames=8, max_batch_frames=32)


def stream(slot: int, ready: int, *, started: bool = True, deadline: float = 0.0) -> StreamView:
    return StreamView(slot, ready, started, deadline)


def test_nothing_ready_is_no_batch() -> None:
    assert plan([], LIMITS) is None
    assert plan([stream(0, 0), stream(1, 0, started=False)], LIMITS) is None


def test_first_chunk_goes_ahead_and_is_one_frame() -> None:
    streams = [stream(0, 8, deadline=-5.0), stream(1, 3, started=False)]
    assert plan(streams, LIMITS) == DecodeBatch((1, 0), 1)


def test_earliest_deadline_sets_the_length_and_others_join() -> None:
    streams = [
        stream(0, 8, deadline=3.0),
        stream(1, 4, deadline=1.0),
        stream(2, 3, deadline=2.0),  # too short to join a batch of four frames
    ]
    assert plan(streams, LIMITS) == DecodeBatch((1, 0), 4)


def test_file_renders_yield_to_live_streams() -> None:
    streams = [stream(0, 8, deadline=math.inf), stream(1, 8, deadline=9e9)]
    batch = plan(streams, PlanLimits(8, 8))
    assert batch == DecodeBatch((1,), 8)


@st.composite
def views(draw: st.DrawFn) -> list[StreamView]:
    count = draw(st.integers(0, 20))
    return [
        stream(
            slot,
            draw(st.integers(0, 30)),
            started=draw(st.booleans()),
            deadline=draw(st.floats(-10, 10)),
        )
        for slot in range(count)
    ]


@given(views(), st.integers(1, 16), st.integers(1, 64))
def test_every_batch_is_possible_bounded_and_starts_with_the_most_urgent(
    streams: list[StreamView], max_chunk: int, max_batch: int
) -> None:
    batch = plan(streams, PlanLimits(max_chunk, max_batch))
    ready = {s.slot: s for s in streams if s.ready_frames}
    if not ready:
        assert batch is None
        return
    assert batch is not None
    assert len(set(batch.slots)) == len(batch.slots) >= 1
    assert all(ready[slot].ready_frames >= batch.frames for slot in batch.slots)
    assert 1 <= batch.frames <= max_chunk
    assert len(batch.slots) == 1 or len(batch.slots) * batch.frames <= max_batch
    most_urgent = min(ready.values(), key=lambda s: (s.started, s.deadline_s, s.slot))
    assert batch.slots[0] == most_urgent.slot
