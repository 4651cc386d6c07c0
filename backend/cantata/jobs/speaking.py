"""Speaks one kept job: a few sentences ahead, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import numpy as np

from cantata.audio.pcm import to_s16
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    NotStored,
    Overloaded,
    Quarantined,
    RequestFailed,
    StageDied,
    StartFailed,
)
from cantata.contract.service import SpeechChunk, SpokenWord
from cantata.jobs.job import Job, JobFile, JobSentence, JobStatus, SpokenSentence
from cantata.jobs.store import JobStopped, JobStore
from cantata.text import strip_markup

logger = logging.getLogger(__name__)

SENTENCES_AT_ONCE = 4
_ATTEMPTS = 5
"""At a sentence that fails by no fault of its own."""
_FIRST_WAIT_S, _MAX_WAIT_S = 0.5, 30.0


class Narrator(Protocol):
    """Speaks the sentences of jobs, and writes their files."""

    async def speak(self, job: Job, sentence: JobSentence) -> SpokenSentence:
        """The sound of a sentence: the same for the same job and sentence. Raises CantataError: it
        cannot be spoken, now or ever."""
        ...

    async def write(self, job: Job) -> tuple[JobFile, ...]: ...


async def speak_or_skip(
    speak: Callable[[JobSentence], Awaitable[SpokenSentence]], sentence: JobSentence, channels: int
) -> SpokenSentence:
    """The sound of a sentence; of its bare words, if there is markup in it that is none; or else
    nothing: a book goes on behind what cannot be spoken."""
    try:
        return await speak(sentence)
    except InvalidRequest as error:
        if error.param != "input":
            raise
    plain = strip_markup(sentence.text).replace("<", " ").replace("[", " ")
    try:
        spoken = await speak(replace(sentence, text=plain))
    except InvalidRequest as error:
        if error.param != "input":
            raise
        return SpokenSentence(np.zeros((0, channels), np.int16), (), error.message)
    return replace(spoken, words=())  # their places are in another text


async def gather_sound(run: AsyncIterable[SpeechChunk], channels: int) -> SpokenSentence:
    samples, words = [np.zeros((0, channels), np.int16)], list[SpokenWord]()
    async for chunk in run:
        samples.append(to_s16(chunk.samples))
        words += chunk.words
    return SpokenSentence(np.concatenate(samples), tuple(words))


class SpokenJobs:
    """Implements `jobs.runner.KeptWork` for what is to be spoken. `narrator`: speaks them."""

    def __init__(self, store: JobStore, narrator: Narrator) -> None:
        self._store = store
        self._narrator = narrator

    async def list_open(self) -> list[str]:
        return await self._store.list_open()

    async def work(self, id: str) -> None:
        await speak_job(self._store, self._narrator, id)

    async def fail(self, id: str, code: str, message: str) -> None:
        with suppress(JobStopped, CantataError):
            await self._store.end(id, JobStatus.FAILED, error=(code, message))

    async def delete_expired(self) -> None:
        await self._store.delete_expired()


async def speak_job(store: JobStore, narrator: Narrator, id: str) -> None:
    """Speak a job from where it is to its end, and write its files.

    Raises:
        JobStopped: it was cancelled or deleted meanwhile.
        CantataError: it cannot be spoken; it stays where it is.
    """
    job = await store.find(id)
    if job.status is JobStatus.QUEUED:
        await store.set_status(id, JobStatus.SPEAKING)
    ahead: dict[int, asyncio.Task[SpokenSentence]] = {}
    try:
        while waiting := await store.list_unspoken(id, SENTENCES_AT_ONCE):
            for sentence in waiting:
                if sentence.number not in ahead:
                    speaking = _speak_patiently(narrator, job, sentence)
                    task = asyncio.create_task(speaking, name=f"{id}:{sentence.number}")
                    ahead[sentence.number] = task
            first = waiting[0]
            spoken = await ahead[first.number]
            await store.keep_sound(id, job.shape, first, spoken)
            del ahead[first.number]
    finally:
        for task in ahead.values():
            task.cancel()
        if ahead:
            await asyncio.wait(ahead.values())
    await store.set_status(id, JobStatus.WRITING)
    files = await narrator.write(await store.find(id))
    await store.end(id, JobStatus.COMPLETED, files)


async def _speak_patiently(narrator: Narrator, job: Job, sentence: JobSentence) -> SpokenSentence:
    """Speak; try again after what passes, such as a stage that starts again."""
    wait_s = _FIRST_WAIT_S
    for left in reversed(range(_ATTEMPTS)):
        try:
            return await narrator.speak(job, sentence)
        except (StartFailed, Quarantined, InvalidRequest):
            raise
        except (Overloaded, StageDied, RequestFailed, NotStored) as error:
            if not left:
                raise
            logger.info("%s waits %.1f s: %s", job.id, wait_s, error)
        await asyncio.sleep(wait_s)
        wait_s = min(2 * wait_s, _MAX_WAIT_S)
    raise AssertionError("unreachable")
