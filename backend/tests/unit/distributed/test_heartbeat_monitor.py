"""When an end counts as lost, by clocks of the test's own."""

from __future__ import annotations

import pytest

from cantata.distributed.link.errors import HeartbeatTimeout, PeerHung
from cantata.distributed.link.heartbeat import (
    HUNG_S,
    LOST_S,
    TICK_S,
    HeartbeatMonitor,
    check_loop,
)


def ticks_until_lost(monitor: HeartbeatMonitor, now: float, tick_s: float) -> int:
    """How many ticks of this length it takes, at most ten thousand."""
    for number in range(10_000):
        now += tick_s
        try:
            monitor.tick(now)
        except HeartbeatTimeout:
            return number + 1
    raise AssertionError("never lost")


def test_silence_is_noticed_in_time() -> None:
    assert ticks_until_lost(HeartbeatMonitor(50.0), 50.0, TICK_S) * TICK_S <= LOST_S + TICK_S


def test_who_is_heard_is_not_lost() -> None:
    monitor, now = HeartbeatMonitor(0.0), 0.0
    for number in range(1_000):
        now += TICK_S
        monitor.tick(now)
        if number % 10 == 0:
            monitor.on_data()


def test_a_late_loop_does_not_blame_the_other_end() -> None:
    """It stood still for ten seconds; what arrived meanwhile is read after the tick."""
    monitor = HeartbeatMonitor(0.0)
    monitor.tick(10.0)
    monitor.on_data()
    monitor.tick(10.0 + TICK_S)


def test_a_loop_that_is_always_late_finds_out_later_but_does() -> None:
    punctual = ticks_until_lost(HeartbeatMonitor(0.0), 0.0, TICK_S)
    late = ticks_until_lost(HeartbeatMonitor(0.0), 0.0, 5 * TICK_S)
    assert punctual / 2 <= late <= punctual


def test_an_end_whose_loop_hangs_is_lost_although_it_beats() -> None:
    check_loop(HUNG_S - 1)
    with pytest.raises(PeerHung, match="event loop"):
        check_loop(HUNG_S)
