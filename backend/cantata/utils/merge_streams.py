"""Merges async streams: each element is yielded as soon as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

T = TypeVar("T")


async def merge_streams(*streams: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The elements of all, in the order in which they come; of each, at most one is taken before it
    is asked for. At the end, or when this is closed, all are closed.

    Raises:
        Whatever a stream raises; the others are closed.
    """
    waiting = {asyncio.create_task(_next(stream)): stream for stream in streams}
    try:
        while waiting:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                stream = waiting.pop(task)
                for element in task.result():
                    yield element
                    waiting[asyncio.create_task(_next(stream))] = stream
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


async def _next(stream: AsyncGenerator[T, None]) -> list[T]:
    """The next element; none at the end."""
    async for element in stream:
        return [element]
    return []
