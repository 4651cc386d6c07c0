"""Speaks kept jobs, a few at a time, the oldest first; deletes those whose time has come."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from cantata.contract.data.errors import CantataError, StorageFailed
from cantata.jobs.job import JobStatus
from cantata.jobs.speaking import Narrator, speak_job
from cantata.jobs.store import JobStopped, JobStore

logger = logging.getLogger(__name__)

JOBS_AT_ONCE = 2
_RETRY_S = 30.0
_LOOK_FOR_EXPIRED_S = 600.0


class JobRunner:
    """Speaks what a store has, and what is added to it.

    Args:
        store: of the jobs.
        narrator: speaks them.
    """

    def __init__(self, store: JobStore, narrator: Narrator) -> None:
        self._store = store
        self._narrator = narrator
        self._jobs: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until it is cancelled, which leaves every job where it is."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._expire(), name="jobs:expire")
                await self._watch()
        finally:
            for task in self._jobs.values():
                task.cancel()
            if self._jobs:
                await asyncio.wait(self._jobs.values())

    async def _watch(self) -> None:
        while True:
            seen = self._store.changes
            try:
                waiting = await self._store.list_open() if self._store.exists else []
            except StorageFailed as error:
                logger.warning("kept jobs wait: %s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            for id, task in list(self._jobs.items()):
                if task.done():
                    del self._jobs[id]
                elif id not in waiting:
                    task.cancel()
            for id in waiting:
                if len(self._jobs) < JOBS_AT_ONCE and id not in self._jobs:
                    self._jobs[id] = asyncio.create_task(self._work(id), name=id)
            change = asyncio.ensure_future(self._store.wait(seen))
            try:
                awaited = {change, *self._jobs.values()}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()
                await asyncio.wait([change])

    async def _expire(self) -> None:
        while True:
            if self._store.exists:
                with suppress(CantataError):
                    await self._store.delete_expired()
            await asyncio.sleep(_LOOK_FOR_EXPIRED_S)

    async def _work(self, id: str) -> None:
        try:
            await speak_job(self._store, self._narrator, id)
        except JobStopped:
            return
        except StorageFailed as error:
            # A disk that is full today has room tomorrow.
            logger.warning("%s waits: %s", id, error)
            await asyncio.sleep(_RETRY_S)
        except CantataError as error:
            logger.warning("%s failed: %s", id, error)
            await self._fail(id, error.code, error.message)
        except Exception:
            logger.exception("%s failed", id)
            await self._fail(id, "internal_error", "an unexpected error occurred")

    async def _fail(self, id: str, code: str, message: str) -> None:
        with suppress(JobStopped, CantataError):
            await self._store.end(id, JobStatus.FAILED, error=(code, message))
