"""Works on what is kept, a few of each kind at a time, the oldest first; deletes that whose time
has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from cantata.contract.data.errors import CantataError, StorageFailed
from cantata.jobs.store import JobStopped, JobStore

logger = logging.getLogger(__name__)

JOBS_AT_ONCE = 2
"""Of each kind."""
_RETRY_S = 30.0
_LOOK_FOR_EXPIRED_S = 600.0


class KeptWork(Protocol):
    """One kind of work that a store keeps."""

    async def list_open(self) -> list[str]:
        """Ids of what is not done, the oldest first."""
        ...

    async def work(self, id: str) -> None:
        """Go on from where it is to its end.

        Raises:
            JobStopped: it was cancelled or deleted meanwhile.
            CantataError: it cannot be done; it stays where it is.
        """
        ...

    async def fail(self, id: str, code: str, message: str) -> None:
        """End what cannot be done."""
        ...

    async def delete_expired(self) -> None: ...


class JobRunner:
    """Works on what a store has, and on what is added to it."""

    def __init__(self, store: JobStore, kinds: Sequence[KeptWork]) -> None:
        self._store = store
        self._kinds = kinds
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
                waiting = await self._list_open()
            except StorageFailed as error:
                logger.warning("kept jobs wait: %s", error)
                await asyncio.sleep(_RETRY_S)
                continue
            for id, task in list(self._jobs.items()):
                if task.done():
                    del self._jobs[id]
                elif not any(id in ids for ids in waiting):
                    task.cancel()
            for kind, ids in zip(self._kinds, waiting, strict=True):
                running = sum(id in self._jobs for id in ids)
                for id in [id for id in ids if id not in self._jobs][: JOBS_AT_ONCE - running]:
                    self._jobs[id] = asyncio.create_task(self._work(kind, id), name=id)
            change = asyncio.ensure_future(self._store.wait(seen))
            try:
                awaited = {change, *self._jobs.values()}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()
                await asyncio.wait([change])

    async def _list_open(self) -> list[list[str]]:
        if not self._store.exists:
            return [[] for _ in self._kinds]
        return [await kind.list_open() for kind in self._kinds]

    async def _expire(self) -> None:
        while True:
            for kind in self._kinds:
                if self._store.exists:
                    with suppress(CantataError):
                        await kind.delete_expired()
            await asyncio.sleep(_LOOK_FOR_EXPIRED_S)

    async def _work(self, kind: KeptWork, id: str) -> None:
        try:
            await kind.work(id)
        except JobStopped:
            return
        except StorageFailed as error:
            # A disk that is full today has room tomorrow.
            logger.warning("%s waits: %s", id, error)
            await asyncio.sleep(_RETRY_S)
        except CantataError as error:
            logger.warning("%s failed: %s", id, error)
            await kind.fail(id, error.code, error.message)
        except Exception:
            logger.exception("%s failed", id)
            await kind.fail(id, "internal_error", "an unexpected error occurred")
