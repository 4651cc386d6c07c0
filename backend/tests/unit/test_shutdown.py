"""What a command does until a signal."""

from __future__ import annotations

import asyncio

import pytest

from cantata.serving.shutdown import run_until

LIMIT_S = 20.0


class Work:
    """Has no end of its own."""

    def __init__(self) -> None:
        self.began, self.cleaned_up = asyncio.Event(), False

    async def run(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.cleaned_up = True


async def test_a_signal_ends_the_work_and_waits_for_that() -> None:
    stop_event, work = asyncio.Event(), Work()
    doing = asyncio.create_task(run_until(stop_event, work.run()))
    await work.began.wait()
    stop_event.set()
    async with asyncio.timeout(LIMIT_S):
        assert not await doing
    assert work.cleaned_up


async def test_a_cancelled_command_leaves_no_work_behind() -> None:
    work = Work()
    doing = asyncio.create_task(run_until(asyncio.Event(), work.run()))
    await work.began.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert work.cleaned_up


async def test_an_error_of_the_work_is_the_commands() -> None:
    async def broken() -> None:
        raise OSError("no descriptor is free")

    with pytest.raises(OSError, match="no descriptor"):
        await run_until(asyncio.Event(), broken())
