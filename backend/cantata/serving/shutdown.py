"""Runs a command's work until a signal stops it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager


async def run_until(stop_event: asyncio.Event, work: Coroutine[None, None, object]) -> bool:
    """Run some work until it ends or the event is set, which cancels it; whether it ended."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop_event.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
    if working.cancelled():
        return False
    working.result()
    return True


@contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGTERM and SIGINT set."""
    loop, stop_event = asyncio.get_running_loop(), asyncio.Event()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop_event.set)
    try:
        yield stop_event
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
