"""A model's start. Requests that come while it loads wait for it: so many, and so long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from cantata.contract.data.errors import Overloaded, StageDied, StartFailed

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
