"""The simulated player: when a listener would have heard a gap."""

from __future__ import annotations

import pytest

from cantata.audio.playback import SimulatedPlayback


def play(reserve_s: float, *arrivals_s: float, asked_s: float = 0.0) -> SimulatedPlayback:
    """A tenth of a second of sound at each of these times."""
    player = SimulatedPlayback(reserve_s)
    for arrived_s in arrivals_s:
        player.take(min(asked_s, arrived_s), arrived_s, 0.1)
    return player


def test_sound_in_time_leaves_no_gap() -> None:
    player = play(0.0, 5.0, 5.1, 5.15, 5.3)
    assert (player.underruns, player.still_s) == (0, 0.0)


def test_each_gap_is_counted_with_its_length() -> None:
    player = play(0.0, 5.0, 5.125, 5.225, 5.5)
    assert player.underruns == 2
    assert player.still_s == pytest.approx(0.025 + 0.175)


def test_a_reserve_covers_what_it_is_long_enough_for() -> None:
    arrivals_s = (5.0, 5.125, 5.225, 5.5)
    assert play(0.05, *arrivals_s).still_s == pytest.approx(0.15)
    assert play(0.2, *arrivals_s).underruns == 0


def test_what_a_slow_reader_holds_back_is_not_missing() -> None:
    """It took its second piece after a minute; the third arrived 20 ms later."""
    player = SimulatedPlayback(0.0)
    player.take(0.0, 0.05, 0.1)
    player.take(60.0, 60.02, 0.1)
    assert player.still_s == pytest.approx(0.02)
    player.take(120.0, 120.0, 0.1)
    assert player.underruns == 1
