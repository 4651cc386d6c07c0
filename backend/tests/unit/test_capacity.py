"""How many listeners are admitted, from what the stages' steps take."""

from __future__ import annotations

import pytest

from cantata.contract.process.messages import StepCost
from cantata.scheduling.capacity import IN_TIME, StagePace, compute_places

PERIOD_S = 0.08
TALKER = StagePace(StepCost(0.02, 0.0008))
DECODER = StagePace(StepCost(0.026, 0.001), max_batch_frames=64)


def test_nothing_measured_promises_every_slot() -> None:
    assert compute_places([], PERIOD_S, 12) == 12


def test_one_stage_keeps_up_with_as_many_as_fit_into_a_period() -> None:
    assert compute_places([StagePace(StepCost(0.024, 0.002))], PERIOD_S, 64) == 20
    assert compute_places([StagePace(StepCost(0.5, 0.1))], PERIOD_S, 64) == 1


def test_a_listener_who_has_just_begun_is_counted_on() -> None:
    """Each stage alone would keep up with many more."""
    both = compute_places([TALKER, DECODER], PERIOD_S, 200)
    assert compute_places([TALKER], PERIOD_S, 200) == 55
    assert compute_places([DECODER], PERIOD_S, 200) == 38
    way_s = TALKER.cost.seconds(both) + 2 * DECODER.cost.seconds(both) + DECODER.cost.seconds(1)
    assert way_s <= IN_TIME * PERIOD_S < way_s + TALKER.cost.frame_s + 2 * DECODER.cost.frame_s


@pytest.mark.parametrize("slower", [0.5, 1.0])
def test_a_slower_machine_has_fewer_places(slower: float) -> None:
    def on_machine(factor: float) -> int:
        costs = [
            StepCost(factor * stage.cost.fixed_s, factor * stage.cost.frame_s)
            for stage in (TALKER, DECODER)
        ]
        return compute_places([StagePace(costs[0]), StagePace(costs[1], 64)], PERIOD_S, 64)

    assert 1 <= on_machine(2 * slower) < on_machine(slower) <= 64
