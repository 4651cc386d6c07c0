"""A machine that is about to stop waits for the requests that are running."""

from __future__ import annotations

import pytest

from cantata.pipeline.host_drain import HostDrain


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
