"""What a command does until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager


async def unless(told: asyncio.Event, work: Coroutine[None, None, object]) -> bool:
    """Whether some work has ended before the next signal, which cancels it."""
    working = asyncio.create_task(work)
    telling = asyncio.create_task(told.wait())
    try:
        await asyncio.wait({working, telling}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        telling.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
    if working.cancelled():
        return False
    working.result()
    return True


@contextmanager
def signals() -> Iterator[asyncio.Event]:
    """Set by SIGTERM and SIGINT."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
