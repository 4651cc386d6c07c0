"""The fitted time of steps, and how many listeners a single stage then promises."""

from __future__ import annotations

import random

import pytest

from cantata.scheduling.capacity import USABLE, StagePace, compute_places
from cantata.scheduling.step_time_model import FrameTimeModel, StepTimeModel

PERIOD_S = 0.08


class PacedStage:
    """A stage with this many slots that runs one step after another."""

    def __init__(self, slots: int) -> None:
        self.now_s = 0.0
        self._pace = StepTimeModel()
        self._slots = slots

    def measure(self, frames: int, seconds: float) -> None:
        self.now_s += seconds
        self._pace.measure(frames, seconds, self.now_s)

    @property
    def places(self) -> int:
        cost = self._pace.cost
        stages = [] if cost is None else [StagePace(cost)]
        return compute_places(stages, PERIOD_S, self._slots)


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
    """One listener at a time: the fixed part of a step cannot be separated from the rest."""
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


def test_a_start_on_a_busy_machine_is_forgotten_within_a_request() -> None:
    """Sixty times slower during warm-up; then idle, and used by one client."""
    pace = paced(0.4, 0.02, [1, 32], slots=32)
    assert pace.places == 1
    pace.now_s += 60
    for _ in range(30):
        pace.measure(1, 0.007)
    assert pace.places >= 8
    for frames in range(1, 17):
        for _ in range(10):
            pace.measure(min(frames, pace.places), 0.0066 + 0.00034 * min(frames, pace.places))
    assert pace.places == 32


def test_after_a_pause_the_first_steps_count_for_more_than_they_did() -> None:
    def moved_by(pause_s: float) -> float:
        pace = StepTimeModel()
        for step in range(200):
            pace.measure(4, 0.01, step * 0.01)
        before = pace.cost
        pace.measure(4, 0.02, 2.0 + pause_s)
        assert before is not None
        assert pace.cost is not None
        return pace.cost.seconds(4) - before.seconds(4)

    assert moved_by(60.0) > 5 * moved_by(0.01) > 0


def test_a_step_that_waited_for_a_processor_is_no_slow_machine() -> None:
    pace = paced(0.005, 0.0005, [1, 16], slots=32)
    assert pace.places == 32
    pace.measure(16, 3.0)
    assert pace.places == 32


@pytest.mark.parametrize("slow", [5.0, 20.0])
def test_a_busy_start_is_forgotten_with_the_first_steps_of_a_listener(slow: float) -> None:
    """What was measured while the machine was busy admits few; three steps later it is known."""
    fixed_s, frame_s, slots = 0.004, 0.0004, 32
    pace, now_s = StepTimeModel(), 0.0
    for frames in (*[1] * 8, 4, 12, 20, slots, slots):
        now_s += 0.05
        pace.measure(frames, slow * (fixed_s + frame_s * frames), now_s)
    assert pace.cost is not None
    assert compute_places([StagePace(pace.cost)], 0.08, slots) < slots
    now_s += 30.0
    for _ in range(3):
        now_s += 0.08
        pace.measure(1, fixed_s + frame_s, now_s)
    assert compute_places([StagePace(pace.cost)], 0.08, slots) == slots


SENTENCE = [(3, 0.04), (5, 0.036), (10, 0.051), (14, 0.059), (0, 0.0)]
"""Frames of a sentence's parts, and seconds of each: of short ones, most is fixed."""


def test_where_no_two_requests_share_a_step_all_of_it_is_their_own() -> None:
    """The fit takes half of these times for a cost that all share, and so promises too much."""
    alone, shared = FrameTimeModel(), StepTimeModel()
    for number in range(200):
        frames, seconds = SENTENCE[number % len(SENTENCE)]
        for model in (alone, shared):
            model.measure(frames, seconds, number * 0.1)
    used = sum(s for _, s in SENTENCE) / (sum(n for n, _ in SENTENCE) * PERIOD_S)
    assert alone.cost is not None
    assert shared.cost is not None
    promised = compute_places([StagePace(alone.cost)], PERIOD_S, 64)
    assert promised == pytest.approx(USABLE / used, abs=1)
    assert compute_places([StagePace(shared.cost)], PERIOD_S, 64) > 1.3 * promised


def test_one_step_that_waited_for_a_processor_changes_little() -> None:
    model = FrameTimeModel()
    assert model.cost is None
    for number in range(100):
        model.measure(10, 0.05, number)
    before = model.cost
    model.measure(10, 5.0, 100)
    assert before is not None
    assert model.cost is not None
    assert before.frame_s == pytest.approx(0.005)
    assert before.frame_s < model.cost.frame_s < 1.15 * before.frame_s


def test_a_machine_that_becomes_slower_is_noticed_within_some_sentences() -> None:
    model = FrameTimeModel()
    for number in range(100):
        model.measure(10, 0.05, number)
    for number in range(100):
        model.measure(10, 0.1, number)
    assert model.cost is not None
    assert model.cost.frame_s == pytest.approx(0.01, rel=0.06)
