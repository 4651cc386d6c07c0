"""Supervision of stages: restarts of dead ones, warnings of those that die often, and a machine
that waits for the requests that are running before it stops."""

from __future__ import annotations

import signal

import pytest

from cantata.pipeline.supervision import (
    BACKOFF_S,
    HEALTHY_S,
    KILLS_WITHIN_S,
    HostDrain,
    RestartHistory,
)

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
        waits.append(history.record_death("crashed", 1))
        history.ready()
        clock.now_s += HEALTHY_S / 2
    assert waits == [*BACKOFF_S, BACKOFF_S[-1], BACKOFF_S[-1]]
    clock.now_s += HEALTHY_S
    assert history.record_death("crashed", 1) == BACKOFF_S[0]
    assert (history.restarts, history.last_death) == (7, "crashed")


def test_a_stage_that_finished_a_request_did_some_good() -> None:
    history = RestartHistory(Clock())
    for _ in range(100):
        history.ready()
        history.useful()
        assert history.record_death("killed", KILLED) == BACKOFF_S[0]


def test_attempts_that_never_become_ready_wait_longer_and_longer() -> None:
    clock = Clock()
    history = RestartHistory(clock)
    waits = []
    for _ in range(4):
        waits.append(history.record_death("no descriptor", None))
        clock.now_s += 100
    assert tuple(waits) == BACKOFF_S


def test_three_kills_within_a_minute_are_reported() -> None:
    clock = Clock()
    history = RestartHistory(clock)
    for _ in range(2):
        history.record_death("killed", KILLED)
        clock.now_s += 10
    history.record_death("crashed", 1)
    assert history.trouble is None
    history.record_death("killed", KILLED)
    assert history.trouble is not None
    assert "memory" in history.trouble
    clock.now_s += KILLS_WITHIN_S
    assert history.trouble is None


@pytest.fixture
def disconnect_draining() -> list[str]:
    return []


@pytest.fixture
def host_drain(disconnect_draining: list[str]) -> HostDrain:
    return HostDrain(lambda: disconnect_draining.append("let go"))


def test_without_requests_it_leaves_at_once(
    host_drain: HostDrain, disconnect_draining: list[str]
) -> None:
    host_drain.announce()
    assert disconnect_draining == ["let go"]


def test_it_leaves_once_after_the_last_request(
    host_drain: HostDrain, disconnect_draining: list[str]
) -> None:
    with host_drain.track_request():
        with host_drain.track_request():
            host_drain.announce()
        assert disconnect_draining == []
    assert disconnect_draining == ["let go"]
    with host_drain.track_request():
        pass
    assert disconnect_draining == ["let go"]


def test_a_request_that_fails_has_ended_too(
    host_drain: HostDrain, disconnect_draining: list[str]
) -> None:
    request = host_drain.track_request()
    request.__enter__()
    host_drain.announce()
    assert disconnect_draining == []
    assert not request.__exit__(ValueError, ValueError("it fails"), None)
    assert disconnect_draining == ["let go"]
