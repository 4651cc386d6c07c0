"""A machine that is about to stop waits for the requests that are running."""

from __future__ import annotations

import pytest

from cantata.engine.departures import Departures


@pytest.fixture
def let_go() -> list[str]:
    return []


@pytest.fixture
def departures(let_go: list[str]) -> Departures:
    return Departures(lambda: let_go.append("let go"))


def test_without_requests_it_leaves_at_once(departures: Departures, let_go: list[str]) -> None:
    departures.announce()
    assert let_go == ["let go"]


def test_it_leaves_once_after_the_last_request(departures: Departures, let_go: list[str]) -> None:
    with departures.at_work():
        with departures.at_work():
            departures.announce()
        assert let_go == []
    assert let_go == ["let go"]
    with departures.at_work():
        pass
    assert let_go == ["let go"]


def test_a_request_that_fails_has_ended_too(departures: Departures, let_go: list[str]) -> None:
    request = departures.at_work()
    request.__enter__()
    departures.announce()
    assert let_go == []
    assert not request.__exit__(ValueError, ValueError("it fails"), None)
    assert let_go == ["let go"]
