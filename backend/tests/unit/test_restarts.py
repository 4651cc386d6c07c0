"""How long a dead stage waits for its restart, and the warning for one that dies often."""

from __future__ import annotations

import signal

from cantata.pipeline.supervision import BACKOFF_S, HEALTHY_S, KILLS_WITHIN_S, RestartHistory

KILLED = -signal.SIGKILL


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_the_wait_grows_while_a_stage_does_no_good_and_falls_again() -> None:
    clock = Clock()
    history = RestartHistory(clock)
    waits = []
    for _ in range(6):
        waits.append(history.died("crashed", 1))
        history.ready()
        clock.now_s += HEALTHY_S / 2
    assert waits == [*BACKOFF_S, BACKOFF_S[-1], BACKOFF_S[-1]]
    clock.now_s += HEALTHY_S
    assert history.died("crashed", 1) == BACKOFF_S[0]
    assert (history.restarts, history.last_death) == (7, "crashed")


def test_a_stage_that_finished_a_request_did_some_good() -> None:
    history = RestartHistory(Clock())
    for _ in range(100):
        history.ready()
        history.useful()
        assert history.died("killed", KILLED) == BACKOFF_S[0]


def test_attempts_that_never_become_ready_wait_longer_and_longer() -> None:
    clock = Clock()
    history = RestartHistory(clock)
    waits = []
    for _ in range(4):
        waits.append(history.died("no descriptor", None))
        clock.now_s += 100
    assert tuple(waits) == BACKOFF_S


def test_three_kills_within_a_minute_are_reported() -> None:
    clock = Clock()
    history = RestartHistory(clock)
    for _ in range(2):
        history.died("killed", KILLED)
        clock.now_s += 10
    history.died("crashed", 1)
    assert history.trouble is None
    history.died("killed", KILLED)
    assert history.trouble is not None
    assert "memory" in history.trouble
    clock.now_s += KILLS_WITHIN_S
    assert history.trouble is None
