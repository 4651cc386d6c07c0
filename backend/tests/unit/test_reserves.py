"""Which listeners are about to run dry."""

from __future__ import annotations

import pytest

from cantata.scheduling.reserves import COMFORTABLE_PERIODS, GIVEN_UP_S, Reserves

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
    reserves = Reserves(PERIOD_S)
    reserves.waits("well supplied", 100.0)
    reserves.waits("this one", 50.0 + left_s)
    assert reserves.is_calm(50.0) is calm


def test_who_has_been_served_waits_for_nothing() -> None:
    reserves = Reserves(PERIOD_S)
    reserves.waits("a", 0.0)
    reserves.waits("a", 0.01)
    assert not reserves.is_calm(0.0)
    reserves.served("a")
    reserves.served("a")
    assert reserves.is_calm(0.0)
    assert len(reserves) == 0
