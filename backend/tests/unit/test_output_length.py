"""How long a text goes on: as texts did so far, and never longer than it may."""

from __future__ import annotations

import pytest

from cantata.scheduling.output_length import OutputLengthEstimator


def test_it_follows_the_texts() -> None:
    usual = OutputLengthEstimator()
    before = usual.left(100_000)
    for _ in range(40):
        usual.ended(20)
    assert usual.left(100_000) == 20 < before
    usual.ended(120)
    assert 20 < usual.left(100_000) < 120


@pytest.mark.parametrize("most", [1, 2, 7])
def test_no_text_is_longer_than_it_may_be(most: int) -> None:
    assert OutputLengthEstimator().left(most) == most


def test_there_is_always_a_step_left() -> None:
    usual = OutputLengthEstimator()
    for _ in range(100):
        usual.ended(0)
    assert usual.left(50) == 1
