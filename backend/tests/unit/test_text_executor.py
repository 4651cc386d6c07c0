"""Work on texts: a thread for short ones, one for long ones."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

from cantata.pipeline.text_executor import LONG_CHARACTERS, TextExecutor

NAME: ContextVar[str] = ContextVar("NAME", default="")


async def test_short_texts_share_a_thread_and_pass_a_long_one() -> None:
    work = TextExecutor()
    may_end = threading.Event()
    long = asyncio.create_task(work.run(LONG_CHARACTERS + 1, may_end.wait, 60))
    async with asyncio.timeout(60):
        threads = await asyncio.gather(*(work.run(10, threading.get_ident) for _ in range(20)))
        assert len(set(threads)) == 1
        assert not long.done()
        may_end.set()
        assert await long
    work.close()


async def test_it_knows_for_whom_it_works() -> None:
    work = TextExecutor()
    NAME.set("request 7")
    assert await work.run(1, NAME.get) == "request 7"
    work.close()
