"""Unloads a pipeline that nobody uses, and loads it again for the next request."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from cantata.contract.data.errors import CantataError, StageDied

logger = logging.getLogger(__name__)


class Loadable(Protocol):
    """What can be unloaded: a pipeline's stage processes."""

    @property
    def ready(self) -> bool:
        """Whether all processes run and accept requests."""
        ...

    async def load(self) -> None:
        """Start the processes that `unload` ended. Raises StageDied: one could not start; none is
        left."""
        ...

    async def unload(self) -> None:
        """End the processes; none holds a request."""
        ...


class IdleUnloader:
    """Counts the uses of a pipeline. Some time after the last one it is unloaded; the next one
    waits until it is loaded again.

    Args:
        pipeline: what is loaded; the first time by somebody else.
        idle_s: seconds after the last use; None: never.
    """

    def __init__(self, stages: Sequence[str], pipeline: Loadable, idle_s: float | None) -> None:
        self.unloaded = False
        """Whether no process runs, because nobody needs one. Still true while they start."""
        self._stages = ", ".join(stages)
        self._pipeline = pipeline
        self._idle_s = idle_s
        self._uses = 0
        self._timer: asyncio.TimerHandle | None = None
        self._changing = asyncio.Lock()
        self._unloading: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._stopped = False

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Use the pipeline for the time of the block, once it is loaded. Raises StageDied: it
        cannot be loaded. The next use tries again."""
        self._uses += 1
        self._cancel_timer()
        try:
            if self.unloaded:
                await self._wait_until_loaded()
            yield
        finally:
            self._uses -= 1
            if not self._uses:
                self._set_timer()

    async def stop(self) -> None:
        self._stopped = True
        self._cancel_timer()
        tasks = [task for task in (self._loading, self._unloading) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _wait_until_loaded(self) -> None:
        if self._stopped:
            raise StageDied(f"{self._stages}: the server is stopping")
        if self._loading is None or self._loading.done():
            self._loading = self._start_task(self._load(), "load")
        loading = self._loading
        try:
            # Whoever leaves does not end it for those who wait, too.
            await asyncio.shield(loading)
        except asyncio.CancelledError:
            if loading.cancelled():  # by `stop`, not the caller
                raise StageDied(f"{self._stages}: the server is stopping") from None
            raise

    async def _load(self) -> None:
        async with self._changing:
            if self.unloaded:
                logger.info("loading %s for a request", self._stages)
                try:
                    await self._pipeline.load()
                except (CantataError, OSError) as error:
                    logger.error("%s could not be loaded: %s", self._stages, error)
                    raise
                self.unloaded = False
                if not self._uses:  # all who waited have left
                    self._set_timer()

    async def _unload(self) -> None:
        async with self._changing:
            if self._uses:
                return
            if not self._pipeline.ready:  # one of its stages is being started again
                self._set_timer()
                return
            logger.info("unloading %s: not used for %g s", self._stages, self._idle_s)
            self.unloaded = True
            await self._pipeline.unload()

    def _set_timer(self) -> None:
        if self._idle_s is None or self._stopped or self.unloaded:
            return
        self._cancel_timer()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._idle_s, self._begin_unloading)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin_unloading(self) -> None:
        self._unloading = self._start_task(self._unload(), "unload")

    def _start_task(self, work: Coroutine[None, None, None], what: str) -> asyncio.Task[None]:
        # Its log lines, and those of the processes' watchers, belong to no request.
        name = f"{what}:{self._stages}"
        return asyncio.create_task(work, name=name, context=contextvars.Context())
