"""Which listeners are about to run dry."""

from __future__ import annotations

import pytest

from cantata.scheduling.playout_buffers import COMFORTABLE_PERIODS, GIVEN_UP_S, PlayoutBuffers

PERIOD_S = 0.08


@pytest.mark.parametrize(
    ("left_s", "calm"),
    [
        (COMFORTABLE_PERIODS * PERIOD_S + 0.001, True),
        (COMFORTABLE_PERIODS * PERIOD_S - 0.001, False),
        (-0.5, False),
        (-GIVEN_UP_S - 0.001, True),
    ],
)
def test_one_listener_with_little_left_is_enough(left_s: float, calm: bool) -> None:
    playout_buffers = PlayoutBuffers(PERIOD_S)
    playout_buffers.mark_waiting("well supplied", 100.0)
    playout_buffers.mark_waiting("this one", 50.0 + left_s)
    assert playout_buffers.has_headroom(50.0) is calm


def test_who_has_been_served_waits_for_nothing() -> None:
    playout_buffers = PlayoutBuffers(PERIOD_S)
    playout_buffers.mark_waiting("a", 0.0)
    playout_buffers.mark_waiting("a", 0.01)
    assert not playout_buffers.has_headroom(0.0)
    playout_buffers.clear_waiting("a")
    playout_buffers.clear_waiting("a")
    assert playout_buffers.has_headroom(0.0)
    assert len(playout_buffers) == 0
