"""A model's start: its warm-up, and requests that wait for it, so many and so long."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine

from cantata.contract.data.errors import (
    ChunkTimeout,
    Overloaded,
    StageDied,
    StartFailed,
    first_error,
)

RETRY_S = 5.0
"""After this time it is worth another try: nobody knows how long a model still loads."""


class ModelStart:
    """Whether a model has started, and who waits for that.

    Args:
        name: of the model.
    """

    def __init__(self, name: str) -> None:
        self.done = False
        """Whether it has started. Its stages may be down all the same."""
        self._name = name
        self._over = asyncio.Event()
        self._failure: str | None = None
        self._waiting = 0

    async def run(self, starting: Awaitable[object]) -> None:
        """Start it; raises as `starting`."""
        try:
            await starting
            self.done = True
        except Exception as error:
            self._failure = str(error) or type(error).__name__
            raise
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Nobody waits any longer."""
        self._over.set()

    async def wait(self, max_s: float, most: int) -> None:
        """Return once it has started.

        Args:
            max_s: the longest wait.
            most: requests that may wait at the same time.

        Raises:
            StartFailed: it never will.
            StageDied: it has not started in time, or the server is stopping.
            Overloaded: enough wait already.
        """
        if self._waiting >= most and not self._over.is_set():
            state = f"model {self._name!r} is loading, and {most} requests wait for it"
            raise Overloaded(state, RETRY_S)
        self._waiting += 1
        try:
            async with asyncio.timeout(max_s):
                await self._over.wait()
        except TimeoutError:
            raise StageDied(f"model {self._name!r} is still loading") from None
        finally:
            self._waiting -= 1
        if self._failure is not None:
            raise StartFailed(f"model {self._name!r} could not be started: {self._failure}")
        if not self.done:
            raise StageDied(f"model {self._name!r} is not running")


logger = logging.getLogger(__name__)


async def warm_up_together(
    warm_up: Callable[[], Coroutine[None, None, None]],
    requests: int,
    deadline_s: float,
    model: str,
) -> None:
    """Warm up with so many requests at a time. On a busy machine their output may come too late for
    a listener; nobody listens yet, so they are tried again.

    Args:
        warm_up: one request.
        requests: how many.
        deadline_s: no attempt begins later, by the monotonic clock.
        model: for the log.

    Raises:
        ChunkTimeout: the stages make nothing, also in an attempt that ends after the deadline.
        CantataError: whatever else a request raises, at once.
    """
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(requests):
                    group.create_task(warm_up(), name=f"{model}:warm-up:{number}")
        except ExceptionGroup as errors:
            error = first_error(errors)
            if not isinstance(error, ChunkTimeout) or time.monotonic() > deadline_s:
                raise error from errors
            logger.warning("%s: warming up takes long (%s); trying again", model, error)
        else:
            return
