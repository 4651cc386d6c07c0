"""What a stage host leaves behind when a link is lost while it ends a stage."""

from __future__ import annotations

import asyncio

import pytest

from cantata.distributed.stages.host.stage import _to_its_end

LIMIT_S = 20.0


async def test_a_cancellation_waits_for_the_end_of_a_process() -> None:
    began, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def end() -> None:
        began.set()
        await may_end.wait()
        ended.set()

    ending = asyncio.create_task(_to_its_end(end()))
    async with asyncio.timeout(LIMIT_S):
        await began.wait()
        ending.cancel()
        await asyncio.sleep(0)
        assert not ending.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await ending
    assert ended.is_set()
