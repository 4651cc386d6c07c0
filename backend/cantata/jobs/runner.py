"""Speaks kept jobs: a few at a time, a few sentences ahead, in order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from cantata.contract.data.errors import (
    CantataError,
    ChunkTimeout,
    InvalidRequest,
    NotStored,
    Overloaded,
    Quarantined,
    RequestFailed,
    StageDied,
    StartFailed,
    StorageFailed,
)
from cantata.jobs.job import Job, JobFile, JobStatus, Sentence, SpokenSentence
from cantata.jobs.store import JobStopped, JobStore

logger = logging.getLogger(__name__)

JOBS_AT_ONCE = 2
SENTENCES_AT_ONCE = 4
"""Of one job."""
_ATTEMPTS = 5
"""At a sentence that fails by no fault of its own."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_LOOK_FOR_EXPIRED_S = 600.0


class Narrator(Protocol):
    """Speaks the sentences of jobs, and writes their files."""

    async def until_ready(self) -> None:
        """Wait until models speak.

        Raises:
            CantataError: none ever will.
        """
        ...

    async def speak(self, job: Job, sentence: Sentence) -> SpokenSentence:
        """The sound of a sentence: the same for the same job and sentence.

        Raises:
            CantataError: it cannot be spoken, now or ever.
        """
        ...

    async def write(self, job: Job) -> tuple[JobFile, ...]:
        """Write the files of a job that is spoken."""
        ...


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
            await self._narrator.until_ready()
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
                await asyncio.sleep(_LONGEST_WAIT_S)
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
            await self._speak(await self._store.find(id))
        except JobStopped:
            return
        except CantataError as error:
            logger.warning("%s failed: %s", id, error)
            await self._fail(id, error.code, error.message)
        except Exception:
            logger.exception("%s failed", id)
            await self._fail(id, "internal_error", "an unexpected error occurred")

    async def _fail(self, id: str, code: str, message: str) -> None:
        with suppress(JobStopped, CantataError):
            await self._store.end(id, JobStatus.FAILED, error=(code, message))

    async def _speak(self, job: Job) -> None:
        if job.status is JobStatus.QUEUED:
            await self._store.set_status(job.id, JobStatus.SPEAKING)
        ahead: dict[int, asyncio.Task[SpokenSentence]] = {}
        try:
            while waiting := await self._store.list_unspoken(job.id, SENTENCES_AT_ONCE):
                for sentence in waiting:
                    if sentence.number not in ahead:
                        name = f"{job.id}:{sentence.number}"
                        speaking = self._speak_patiently(job, sentence)
                        ahead[sentence.number] = asyncio.create_task(speaking, name=name)
                first = waiting[0]
                spoken = await ahead[first.number]
                await self._store.keep_sound(job.id, job.shape, first, spoken)
                del ahead[first.number]
        finally:
            for task in ahead.values():
                task.cancel()
            if ahead:
                await asyncio.wait(ahead.values())
        await self._store.set_status(job.id, JobStatus.WRITING)
        files = await self._narrator.write(await self._store.find(job.id))
        await self._store.end(job.id, JobStatus.COMPLETED, files)

    async def _speak_patiently(self, job: Job, sentence: Sentence) -> SpokenSentence:
        """Speak; try again after what passes, such as a stage that starts again."""
        wait_s = _FIRST_WAIT_S
        for left in reversed(range(_ATTEMPTS)):
            try:
                return await self._narrator.speak(job, sentence)
            except (StartFailed, Quarantined, InvalidRequest):
                raise
            except (Overloaded, StageDied, RequestFailed, ChunkTimeout, NotStored) as error:
                if not left:
                    raise
                logger.info("%s waits %.1f s: %s", job.id, wait_s, error)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        raise AssertionError("unreachable")
