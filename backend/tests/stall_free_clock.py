"""Time as a process has it that is not always scheduled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def a_clock_that_leaves_out_stalls() -> Iterator[list[float]]:
    """Seconds in which this process was scheduled, in steps: a busy host does not fail a test.

    Counts iterations 20 ms apart, however late each one was.
    """
    passed = [0.0]

    async def tick() -> None:
        while True:
            await asyncio.sleep(0.02)
            passed[0] += 0.02

    ticking = asyncio.create_task(tick())
    try:
        yield passed
    finally:
        ticking.cancel()
