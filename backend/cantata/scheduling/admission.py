"""Who may enter: as many requests as the stages have slots, a short queue, then a clear no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cantata.contract.errors import Overloaded


class Admission:
    """Hands out places, first come first served.

    Args:
        places: requests that run at the same time.
        max_waiting: requests that may wait for a place.
        max_wait_s: seconds that one waits at most.
    """

    def __init__(self, places: int, max_waiting: int, max_wait_s: float) -> None:
        self._free = asyncio.Semaphore(places)
        self._max_waiting = max_waiting
        self._max_wait_s = max_wait_s
        self._waiting = 0
        self._running = 0

    @property
    def running(self) -> int:
        """Requests that hold a place."""
        return self._running

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return self._waiting

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[None]:
        """Hold a place inside the block.

        Raises:
            Overloaded: the queue is full, or no place became free in time.
        """
        await self._enter()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._free.release()

    async def _enter(self) -> None:
        if self._free.locked() and self._waiting >= self._max_waiting:
            raise Overloaded(f"{self._running} requests are running and {self._waiting} waiting")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._max_wait_s):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded(f"no place became free within {self._max_wait_s:g} s") from None
        finally:
            self._waiting -= 1
