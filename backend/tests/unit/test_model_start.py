"""Requests that come while a model loads: they wait, within limits, and hear how it ended."""

from __future__ import annotations

import asyncio

import pytest

from cantata.api.errors import describe
from cantata.contract.data.errors import ConfigError, Overloaded, StageDied, StartFailed
from cantata.pipeline.model import ModelStart

FOREVER_S = 600.0


async def waiting(start: ModelStart, count: int, max_waiting: int = 8) -> list[asyncio.Task[None]]:
    """So many, each at its wait."""
    tasks = [asyncio.create_task(start.wait(FOREVER_S, max_waiting)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_those_who_wait_go_on_once_it_has_started() -> None:
    start, may_end = ModelStart("painter"), asyncio.Event()
    running = asyncio.create_task(start.run(may_end.wait()))
    early = await waiting(start, 3)
    assert not any(task.done() for task in early)
    assert not start.done
    may_end.set()
    await asyncio.gather(running, *early)
    assert start.done
    await start.wait(0.0, 0)


async def test_no_more_wait_than_may() -> None:
    start = ModelStart("painter")
    early = await waiting(start, 2, max_waiting=2)
    with pytest.raises(Overloaded, match="2 requests wait") as caught:
        await start.wait(0.0, 2)
    assert describe(caught.value).retry_after_s == 5
    early[0].cancel()
    await asyncio.gather(early[0], return_exceptions=True)
    late = await waiting(start, 1, max_waiting=2)
    assert not late[0].done(), "one that gave up has left its place to another"
    start.give_up()
    for outcome in await asyncio.gather(early[1], *late, return_exceptions=True):
        assert isinstance(outcome, StageDied)


async def test_nobody_waits_longer_than_told() -> None:
    start = ModelStart("painter")
    with pytest.raises(StageDied, match="'painter' is still loading") as caught:
        await start.wait(0.0, 1)
    assert describe(caught.value).retry_after_s == 1


async def test_a_start_that_fails_is_told_to_all_and_promises_nothing() -> None:
    async def fail() -> None:
        raise ConfigError("no weights")

    start = ModelStart("painter")
    early = await waiting(start, 2)
    with pytest.raises(ConfigError, match="no weights"):
        await start.run(fail())
    for task in (*early, *await waiting(start, 1)):
        with pytest.raises(StartFailed, match="'painter' could not be started: no weights") as told:
            await task
        answer = describe(told.value)
        assert (answer.status, answer.detail.code) == (503, "start_failed")
        assert answer.retry_after_s is None
