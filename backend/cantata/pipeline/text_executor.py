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
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LONG_CHARACTERS = 2000
"""Longer texts have a thread of their own, so that short ones do not wait for them."""


class TextExecutor:
    """Two threads, started on first use."""

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(1, "text")
        self._long = ThreadPoolExecutor(1, "long-text")

    async def run(
        self, characters: int, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """What `work` returns, for a text of this many characters."""
        pool = self._long if characters > LONG_CHARACTERS else self._short
        context = contextvars.copy_context()
        call = partial(context.run, partial(work, *args, **kwargs))
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    def close(self) -> None:
        """Drop queued work."""
        for pool in (self._short, self._long):
            pool.shutdown(wait=False, cancel_futures=True)
