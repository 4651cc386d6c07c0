"""Where a step of one frame costs as much as one of eight, streams with deep reserves wait for
more frames: fewer steps, and nobody hears it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.process.messages import StepCost
from cantata.scheduling.codec_plan import (
    DecodeBatch,
    PlanLimits,
    StreamView,
    count_gathered_frames,
    find_due_s,
    plan,
)
from codec_listeners import PERIOD_S, CodecWorld, Listener

LIMITS = PlanLimits(max_chunk_frames=8, max_batch_frames=32, frame_period_s=PERIOD_S)
GPU = StepCost(2.9e-3, 0.09e-3)
"""Fitted to 3.4, 4.0, 6.6 and 8.6 ms for eight frames of 1, 2, 4 and 8 streams, which others have
measured for a recorded decoder on an H100."""
CPU = StepCost(1e-3, 4e-3)


def stream(
    slot: int, ready: int, deadline: float = 5.0, *, started: bool = True, more: bool = True
) -> StreamView:
    return StreamView(slot, ready, started, deadline, more_soon=more)


def decide(*streams: StreamView, limits: PlanLimits = LIMITS) -> DecodeBatch | None:
    batch = plan(streams, limits, 0.0, GPU)
    assert (batch is not None) == (find_due_s(streams, limits, GPU) <= 0.0)
    return batch


@pytest.mark.parametrize(
    ("cost", "listeners", "frames"),
    [
        (GPU, 1, 8),
        (GPU, 4, 8),
        (GPU, 5, 4),  # a batch of 32 frames holds four of each
        (GPU, 16, 2),
        (GPU, 64, 1),
        (StepCost(2e-3, 0.4e-3), 1, 4),
        (CPU, 1, 1),
        (None, 1, 1),
    ],
)
def test_as_many_frames_are_gathered_as_cost_one_step(
    cost: StepCost | None, listeners: int, frames: int
) -> None:
    assert count_gathered_frames(LIMITS, cost, listeners) == frames


def test_a_deep_reserve_waits_for_eight_frames() -> None:
    assert decide(stream(0, 7)) is None
    assert decide(stream(0, 8)) == DecodeBatch((0,), 8)
    assert decide(stream(0, 0)) is None


def test_it_waits_no_longer_than_its_listener_can() -> None:
    limits = replace(LIMITS, max_batch_frames=8)
    lead_s = 2 * PERIOD_S + 2 * GPU.seconds(8)
    assert find_due_s([stream(0, 5, 3.0)], limits, GPU) == pytest.approx(3.0 - lead_s)
    assert decide(stream(0, 5, lead_s + 0.001), limits=limits) is None
    assert decide(stream(0, 5, lead_s - 0.001), limits=limits) == DecodeBatch((0,), 4)


def test_it_does_not_wait_for_what_may_not_come() -> None:
    assert decide(stream(0, 3, more=False)) == DecodeBatch((0,), 2)


def test_first_chunks_never_wait_and_go_alone() -> None:
    assert decide(stream(0, 7), stream(1, 1, started=False)) == DecodeBatch((1,), 1)


def test_all_that_wait_are_decoded_together() -> None:
    assert decide(stream(0, 8), stream(1, 7), stream(2, 9)) is None
    assert decide(stream(0, 8), stream(1, 8), stream(2, 9)) == DecodeBatch((0, 1, 2), 8)
    assert decide(stream(0, 8), stream(1, 0, 4.0)) is None, "it gets frames, too"
    assert decide(stream(0, 8), stream(1, 0, 4.0, more=False)) == DecodeBatch((0,), 8)
    assert decide(stream(0, 15), stream(1, 7)) is None
    assert decide(stream(0, 16), stream(1, 7), stream(2, 9)) == DecodeBatch((0, 2), 8)


def test_who_is_decoded_anyway_takes_others_along_and_leads() -> None:
    ending = stream(1, 4, 9.0, more=False)
    assert decide(stream(0, 5, 3.0), ending, stream(2, 3, 2.0)) == DecodeBatch((1, 0), 4)


def test_short_reserves_of_others_shorten_no_batch_that_is_short_anyway() -> None:
    assert plan([stream(0, 8), stream(1, 0, PERIOD_S)], LIMITS, 0.0) == DecodeBatch((0,), 1)
    beginner = stream(1, 0, PERIOD_S, more=False)
    assert decide(stream(0, 8), beginner) == DecodeBatch((0,), 8)
    assert decide(stream(0, 8), replace(beginner, deadline_s=0.005)) == DecodeBatch((0,), 1)


def test_once_sound_is_late_all_who_wait_share_a_full_batch() -> None:
    streams = [stream(slot, 8, -0.5 + slot, more=False) for slot in range(4)]
    limits = replace(LIMITS, max_batch_frames=8)
    assert decide(*streams, limits=limits) == DecodeBatch((0, 1, 2, 3), 2)


VIEWS = st.builds(
    StreamView,
    slot=st.integers(0, 1000),
    ready_frames=st.integers(0, 30),
    started=st.booleans(),
    deadline_s=st.floats(-10, 10) | st.just(math.inf),
    context_frames_left=st.sampled_from((0, 0, 3, 40)),
    first_frames=st.integers(1, 3),
    more_soon=st.booleans(),
)


@given(st.lists(VIEWS, max_size=20, unique_by=lambda view: view.slot), st.sampled_from((None, CPU)))
def test_where_cost_grows_with_the_frames_nothing_changes(
    streams: list[StreamView], cost: StepCost | None
) -> None:
    usual = plan([replace(view, more_soon=False) for view in streams], LIMITS, 0.0)
    assert plan(streams, LIMITS, 0.0, cost) == usual
    ready = any(view.ready_frames for view in streams)
    assert find_due_s(streams, LIMITS, cost) == (-math.inf if ready else math.inf)


def compare(listeners: list[Listener], max_batch_frames: int = 32) -> float:
    """How many times as many steps the plan takes that lets nobody wait; all hear the same."""
    worlds = {
        device: CodecWorld(
            GPU, talker_s=0.1 * PERIOD_S, device=device, max_batch_frames=max_batch_frames
        )
        for device in ("cpu", "cuda")
    }
    heard = {device: [replace(one) for one in listeners] for device in worlds}
    steps = {device: world.play(heard[device]) for device, world in worlds.items()}
    batch_s = GPU.seconds(max_batch_frames)
    for usual, gathered in zip(*heard.values(), strict=True):
        np.testing.assert_array_equal(*(np.concatenate(x.samples) for x in (usual, gathered)))
        assert usual.late_s == gathered.late_s == 0.0
        assert usual.first_s is not None
        assert gathered.first_s is not None
        assert gathered.ended_s <= usual.ended_s + 2 * batch_s, "an end waits for nothing"
        assert gathered.first_s <= usual.first_s + batch_s, "a batch cannot be interrupted"
    return steps["cpu"] / steps["cuda"]


def test_one_stream_at_a_tenth_of_real_time_takes_a_sixth_of_the_steps() -> None:
    assert compare([Listener(0.0, 250)]) > 6


def test_short_streams_take_fewer_steps_though_their_beginnings_cannot_wait() -> None:
    assert compare([Listener(0.0, 54)]) > 4


def test_streams_that_began_one_after_the_other_share_steps() -> None:
    listeners = [Listener(0.037 * number, 400) for number in range(16)]
    assert compare(listeners, max_batch_frames=128) > 4


@pytest.mark.parametrize("others", [0, 1])
def test_frames_before_a_pause_of_the_text_do_not_wait_for_its_end(others: int) -> None:
    world = CodecWorld(GPU, talker_s=0.1 * PERIOD_S)
    speaker = Listener(0.0, 45, is_open=True)
    world.play([speaker, *(Listener(0.0, 400) for _ in range(others))])
    spoken_s = 45 * 0.1 * PERIOD_S
    # Where others get frames, that it got none says so at once; else a silence of four periods.
    assert speaker.ended_s <= spoken_s + (0.02 if others else 4 * PERIOD_S + 0.01)


def test_nobody_waits_where_the_talker_is_barely_faster_than_the_sound() -> None:
    world = CodecWorld(GPU, talker_s=0.9 * PERIOD_S)
    listeners = [Listener(0.5 * number, 200) for number in range(4)]
    world.play(listeners)
    assert all(listener.late_s == 0.0 for listener in listeners)


def test_a_decoder_whose_steps_grow_is_stepped_as_ever() -> None:
    steps = []
    for device in ("cpu", "cuda"):
        world = CodecWorld(CPU, talker_s=0.1 * PERIOD_S, device=device)
        steps.append(world.play([Listener(0.0, 60)]))
    assert steps[0] == steps[1] == 60
