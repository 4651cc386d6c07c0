"""Threads that prepare texts: few, since they share Python's lock with the event loop.

Whenever the loop releases the lock, for instance to poll its sockets, each computing thread may
delay its return. A burst's texts on all threads of the default pool would delay every stream; in
sequence they take the same time in total.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore
from typing import ParamSpec, TypeVar

from cantata.contract.data.errors import Overloaded

P = ParamSpec("P")
R = TypeVar("R")

LONG_CHARACTERS = 2000
"""Longer texts have a thread of their own, so that short ones do not wait for them."""


MAX_SLOW = 32
"""Pieces of work that take seconds, waiting or in progress."""
RETRY_AFTER_S = 5.0


class TextExecutor:
    """Three threads, started on first use."""

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(1, "text")
        self._long = ThreadPoolExecutor(1, "long-text")
        self._slow = ThreadPoolExecutor(1, "slow-text")
        self._slow_places = BoundedSemaphore(MAX_SLOW)

    async def run(
        self, characters: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What `work` returns, for a text of this many characters."""
        pool = self._long if characters > LONG_CHARACTERS else self._short
        context = contextvars.copy_context()
        call = partial(context.run, partial(work, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    async def run_slow(self, work: Callable[[], object]) -> None:
        """Work that may take seconds, and keeps what it makes. Raises Overloaded: enough of it
        waits already."""
        if not self._slow_places.acquire(blocking=False):
            raise Overloaded("too many requests are being prepared", retry_after_s=RETRY_AFTER_S)
        future = self._slow.submit(work)
        # WHY not when this is left: the work goes on if its client leaves.
        future.add_done_callback(lambda _: self._slow_places.release())
        await asyncio.wrap_future(future)

    def close(self) -> None:
        """Drop queued work."""
        for pool in (self._short, self._long, self._slow):
            pool.shutdown(wait=False, cancel_futures=True)
