"""The fit of a forward's time: how it grows, how fast the machine is now."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost
from cantata.scheduling.forward_time_model import ForwardTimeModel

TRUE = ForwardCost(0.02, 4e-6, 2e-9)
SIDES = (256, 512, 768, 1024)


def get_size(side: int, pictures: int = 1) -> ForwardSize:
    tokens = (side // 16) ** 2
    return ForwardSize(pictures * tokens, pictures * tokens**2)


def fitted(number: int, *, sides: tuple[int, ...] = SIDES, noise: float = 0.0) -> ForwardTimeModel:
    rng = np.random.default_rng(1)
    pace = ForwardTimeModel()
    for _ in range(number):
        size = get_size(int(rng.choice(sides)), int(rng.integers(1, 4)))
        pace.measure(size, TRUE.seconds(size) * float(rng.lognormal(0, noise)))
    return pace


def test_nothing_is_known_at_first() -> None:
    pace = ForwardTimeModel()
    assert pace.cost is None
    for _ in range(2):
        pace.measure(get_size(256), 5.0)
    assert pace.cost is None


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_sizes_that_were_seen_are_predicted(noise: float) -> None:
    cost = fitted(200, noise=noise).cost
    assert cost is not None
    for side in SIDES:
        for pictures in (1, 3):
            size = get_size(side, pictures)
            assert cost.seconds(size) == pytest.approx(TRUE.seconds(size), rel=0.05 + noise)


def test_with_one_size_seen_nothing_is_promised_of_larger_ones() -> None:
    """All time grows with the tokens until forwards show otherwise."""
    pace = ForwardTimeModel()
    for _ in range(20):
        pace.measure(get_size(256), 0.1)
    assert pace.cost is not None
    assert pace.cost.seconds(get_size(256)) == pytest.approx(0.1, rel=0.02)
    assert pace.cost.seconds(get_size(512)) > 0.2


def test_a_machine_that_becomes_slow_is_noticed_within_a_few_forwards_of_any_size() -> None:
    pace = fitted(100)
    for _ in range(12):
        pace.measure(get_size(256), 2 * TRUE.seconds(get_size(256)))
    assert pace.cost is not None
    large = get_size(1024)
    assert pace.cost.seconds(large) == pytest.approx(2 * TRUE.seconds(large), rel=0.2)


def test_one_forward_that_was_held_up_changes_little() -> None:
    pace = fitted(100)
    pace.measure(get_size(512), 100.0)
    assert pace.cost is not None
    assert pace.cost.seconds(get_size(512)) < 2 * TRUE.seconds(get_size(512))


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_long_answers_do_not_hide_what_pictures_cost(noise: float) -> None:
    """The tokens of an answer are forwards of one size: they cannot tell a fixed part from one
    that grows with the tokens."""
    rng, pace = np.random.default_rng(2), fitted(100, noise=noise)
    for read in range(3000):
        size = ForwardSize(1, 500 + read)
        pace.measure(size, TRUE.seconds(size) * float(rng.lognormal(0, noise)))
    assert pace.cost is not None
    for side in SIDES:
        size = get_size(side)
        assert pace.cost.seconds(size) == pytest.approx(TRUE.seconds(size), rel=0.1 + noise)


def test_no_part_is_ever_negative() -> None:
    rng = np.random.default_rng(0)
    pace = ForwardTimeModel()
    for _ in range(300):
        pace.measure(get_size(int(rng.choice(SIDES))), float(rng.uniform(0.001, 1)))
        cost = pace.cost
        assert cost is None or min(cost.fixed_s, cost.token_s, cost.pair_s) >= 0
