"""Speaks the sentences of jobs as files are rendered: after all live streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.jobs.body import JobBody
from cantata.api.measured_run import open_utterance
from cantata.api.schemas import SpeechOptions, VoiceName
from cantata.api.server.lifecycle import Phase
from cantata.api.speech.validated_request import ValidatedRequest, validate_request
from cantata.contract.service import SpeechModel
from cantata.jobs.job import Job, JobFile, Sentence, SpokenSentence
from cantata.jobs.results import ResultOptions, write_results
from cantata.jobs.runner import JobRunner
from cantata.jobs.speaking import gather_sound, speak_or_skip
from cantata.jobs.store import JobStore
from cantata.media.provenance import make_sound_tags


@asynccontextmanager
async def speaking_jobs(context: ApiContext) -> AsyncIterator[None]:
    """Speak kept jobs for the time of the block, if this server keeps any."""
    if context.jobs is None:
        yield
        return
    runner = JobRunner(context.jobs, ServerNarrator(context, context.jobs))
    running = asyncio.create_task(_run_when_ready(context, runner), name="jobs")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])
        await context.jobs.close()


async def _run_when_ready(context: ApiContext, runner: JobRunner) -> None:
    """A server without models ends; its jobs wait for the next one."""
    await context.lifecycle.settled.wait()
    if context.lifecycle.phase is Phase.STARTED:
        await runner.run()


class ServerNarrator:
    """Implements `jobs.speaking.Narrator` with the server's models, voices and lexicons."""

    def __init__(self, context: ApiContext, store: JobStore) -> None:
        self._context = context
        self._store = store

    async def speak(self, job: Job, sentence: Sentence) -> SpokenSentence:
        body = JobBody.model_validate(job.options)
        speak = partial(self._speak, self._context.model(body.model), body)
        return await speak_or_skip(speak, sentence, job.shape.channels)

    async def write(self, job: Job) -> tuple[JobFile, ...]:
        body = JobBody.model_validate(job.options)
        return await write_results(self._store, job, choose_results(self._context, body))

    async def _speak(self, model: SpeechModel, body: JobBody, sentence: Sentence) -> SpokenSentence:
        order = await order_sentence(self._context, model, body, sentence)
        async with open_utterance(model, order.request, self._context.metrics) as spoken:
            return await gather_sound(spoken.run, model.channels)


def choose_results(context: ApiContext, body: JobBody) -> ResultOptions:
    """The files that a job is to have."""
    marked = context.settings.provenance != "off"
    tags = make_sound_tags(str(body.model)) if marked else ()
    return ResultOptions(body.response_format, body.sample_rate, body.captions, tags)


async def order_sentence(
    context: ApiContext, model: SpeechModel, body: JobBody, sentence: Sentence
) -> ValidatedRequest:
    """The request of a sentence of a job.

    Raises:
        InvalidRequest: an option, or the text, is not valid for the model.
    """
    voice: VoiceName | None = body.voices.get(sentence.speaker, body.voice)
    beside = {"input", "title", "voices", "voice", "response_format", "sample_rate", "captions"}
    fields: dict[str, Any] = body.model_dump(exclude=beside)
    options = SpeechOptions.model_validate({**fields, "input": sentence.text, "voice": voice})
    order = await validate_request(context, model, options)
    request = replace(order.request, batch=True, continued=not sentence.begins)
    return replace(order, request=request)
