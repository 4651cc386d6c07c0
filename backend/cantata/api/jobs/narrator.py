"""Speaks the sentences of jobs as files are rendered: after all live streams."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from cantata.api.context import ApiContext
from cantata.api.jobs.body import JobBody
from cantata.api.measured_run import open_utterance
from cantata.api.schemas import SpeechOptions, VoiceName
from cantata.api.server.lifecycle import Phase
from cantata.api.speech.validated_request import ValidatedRequest, validate_request
from cantata.audio.pcm import to_s16
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.service import SpeechModel, SpokenWord
from cantata.jobs.job import Job, JobFile, Sentence, SpokenSentence
from cantata.jobs.results import write_chapters
from cantata.jobs.runner import JobRunner
from cantata.jobs.store import JobStore
from cantata.media.provenance import make_sound_tags
from cantata.text import spoken_text

logger = logging.getLogger(__name__)


@asynccontextmanager
async def speaking_jobs(context: ApiContext) -> AsyncIterator[None]:
    """Speak kept jobs for the time of the block, if this server keeps any."""
    if context.jobs is None:
        yield
        return
    runner = JobRunner(context.jobs, ServerNarrator(context, context.jobs))
    running = asyncio.create_task(runner.run(), name="jobs")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        await context.jobs.close()


class ServerNarrator:
    """Implements `jobs.runner.Narrator` with the server's models, voices and lexicons."""

    def __init__(self, context: ApiContext, store: JobStore) -> None:
        self._context = context
        self._store = store

    async def until_ready(self) -> None:
        lifecycle = self._context.lifecycle
        await lifecycle.settled.wait()
        if lifecycle.phase is not Phase.STARTED:
            # The server ends; the jobs wait for the next one.
            await asyncio.Event().wait()

    async def speak(self, job: Job, sentence: Sentence) -> SpokenSentence:
        body = JobBody.model_validate(job.options)
        model = self._context.model(body.model)
        try:
            return await self._speak(model, body, sentence)
        except InvalidRequest as error:
            if error.param != "input":
                raise
        # A book goes on behind what cannot be spoken, such as markup that is none.
        plain = spoken_text(sentence.text).replace("<", " ").replace("[", " ")
        try:
            return await self._speak(model, body, replace(sentence, text=plain), timed=False)
        except InvalidRequest as error:
            if error.param != "input":
                raise
            nothing = np.zeros((0, job.shape.channels), np.int16)
            return SpokenSentence(nothing, (), error.message)

    async def write(self, job: Job) -> tuple[JobFile, ...]:
        body, folder = JobBody.model_validate(job.options), self._store.find_results(job.id)
        marked = self._context.settings.provenance != "off"
        tags = make_sound_tags(str(body.model)) if marked else ()
        sounds = [self._store.find_sound(job.id, one.number) for one in job.chapters]

        def work() -> tuple[JobFile, ...]:
            shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was cut off
            folder.mkdir(mode=0o700)
            form, rate = body.response_format, body.sample_rate
            return tuple(write_chapters(job, sounds, folder, form, rate, tags))

        return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(work)))

    async def _speak(
        self, model: SpeechModel, body: JobBody, sentence: Sentence, *, timed: bool = True
    ) -> SpokenSentence:
        order = await order_sentence(self._context, model, body, sentence)
        samples, words = [np.zeros((0, model.channels), np.int16)], list[SpokenWord]()
        async with open_utterance(model, order.request, self._context.metrics) as spoken:
            async for chunk in spoken.run:
                samples.append(to_s16(chunk.samples))
                words += chunk.words
        return SpokenSentence(np.concatenate(samples), tuple(words) if timed else ())


async def order_sentence(
    context: ApiContext, model: SpeechModel, body: JobBody, sentence: Sentence
) -> ValidatedRequest:
    """The request of a sentence of a job.

    Raises:
        InvalidRequest: an option, or the text, is not valid for the model.
    """
    voice: VoiceName | None = body.voices.get(sentence.speaker, body.voice)
    fields: dict[str, Any] = body.model_dump(exclude={"input", "title", "voices", "voice"})
    options = SpeechOptions.model_validate({**fields, "input": sentence.text, "voice": voice})
    order = await validate_request(context, model, options)
    request = replace(order.request, batch=True, continued=not sentence.begins)
    return replace(order, request=request)
