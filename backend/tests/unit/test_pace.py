"""What steps take, by the steps taken, and how many listeners a stage alone then promises."""

from __future__ import annotations

import random

import pytest

from cantata.scheduling.pace import Pace
from cantata.scheduling.places import USABLE, StagePace, places

PERIOD_S = 0.08


class PacedStage(Pace):
    """A stage with so many slots."""

    def __init__(self, slots: int) -> None:
        super().__init__()
        self._slots = slots

    @property
    def places(self) -> int:
        stages = [] if self.cost is None else [StagePace(self.cost)]
        return places(stages, PERIOD_S, self._slots)


def paced(fixed_s: float, frame_s: float, counts: list[int], slots: int = 64) -> PacedStage:
    """After steps that made `counts` frames and took a + b n."""
    pace = PacedStage(slots)
    for _ in range(50):
        for frames in counts:
            pace.measure(frames, fixed_s + frame_s * frames)
    return pace


def test_nothing_measured_promises_every_slot() -> None:
    assert PacedStage(12).places == 12


@pytest.mark.parametrize(("fixed_s", "frame_s"), [(0.0, 0.004), (0.03, 0.002), (0.01, 0.001)])
def test_the_last_listener_admitted_is_played_and_the_next_would_not_be(
    fixed_s: float, frame_s: float
) -> None:
    promised = paced(fixed_s, frame_s, [1, 2, 5, 9]).places
    expected = (PERIOD_S * USABLE - fixed_s) / frame_s
    assert promised == pytest.approx(expected, rel=0.1)
    assert fixed_s + frame_s * promised < PERIOD_S


def test_what_was_not_measured_is_not_promised() -> None:
    """One listener at a time: the fixed part of a step cannot be told from the rest."""
    alone = paced(0.02, 0.0, [1])
    assert alone.places == 3
    for _ in range(200):
        alone.measure(3, 0.02)
    assert alone.places > 8


@pytest.mark.parametrize(
    ("fixed_s", "frame_s", "promised"), [(0.5, 0.1, 1), (0.001, 0.0, 8), (0.0, 0.0001, 8)]
)
def test_it_stays_between_one_and_the_slots(fixed_s: float, frame_s: float, promised: int) -> None:
    assert paced(fixed_s, frame_s, [1, 4], slots=8).places == promised


def test_the_first_steps_load_things_and_do_not_count() -> None:
    pace = PacedStage(16)
    for seconds in (2.0, 0.5, 0.5, 0.2, 0.004):
        pace.measure(1, seconds)
    assert pace.places == 16


def test_steps_without_frames_tell_nothing() -> None:
    pace = paced(0.001, 0.001, [1, 4], slots=16)
    before = pace.places
    for _ in range(500):
        pace.measure(0, 10.0)
    assert pace.places == before == 16


def test_it_follows_a_machine_that_gets_slower_and_recovers() -> None:
    pace = paced(0.005, 0.001, [1, 8], slots=32)
    seen = [pace.places]
    for factor in (7, 1):
        for step in range(600):
            frames = (1, 2, 4)[step % 3]
            pace.measure(frames, factor * (0.005 + 0.001 * frames))
        seen.append(pace.places)
    assert seen[0] == seen[2] == 32
    assert 3 <= seen[1] <= 4


def test_what_a_crowd_costs_is_remembered_while_one_listens_and_the_machine_slows_down() -> None:
    dice = random.Random(5)
    pace = paced(0.01, 0.001, [1, 16], slots=16)
    assert pace.places == 16
    for _ in range(5000):
        pace.measure(1, 4 * 0.011 * dice.uniform(0.7, 1.3))
    assert 4 <= pace.places <= 8  # 6; if all of a step grew with its frames it would be 1
    for _ in range(5000):
        pace.measure(1, 0.011 * dice.uniform(0.7, 1.3))
    assert pace.places == 16


def test_a_memory_that_is_wrong_is_corrected_by_who_is_let_in() -> None:
    """The machine was busy while one listener was measured, and idle when sixteen were."""
    pace = PacedStage(16)
    for frames, seconds in ((1, 0.03), (16, 0.03)):
        for _ in range(50):
            pace.measure(frames, seconds)
    assert pace.places == 16
    admitted = []
    for _ in range(2000):
        admitted.append(min(pace.places, 12))
        pace.measure(admitted[-1], 0.02 + 0.005 * admitted[-1])
    assert set(admitted[-500:]) <= {8, 9}


def test_noise_changes_little() -> None:
    dice = random.Random(3)
    pace = PacedStage(64)
    promised = set()
    for step in range(2000):
        frames = dice.randint(1, 12)
        pace.measure(frames, (0.01 + 0.002 * frames) * dice.uniform(0.7, 1.3))
        if step > 200:
            promised.add(pace.places)
    assert min(promised) >= 20
    assert max(promised) <= 40
