"""Speaks the sentences of jobs as files are rendered: after all live streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.jobs.body import JobBody
from cantata.api.measured_run import open_utterance
from cantata.api.schemas import SpeechOptions, VoiceName
from cantata.api.speech.validated_request import ValidatedRequest, validate_request
from cantata.api.speech.verification import speak_verified
from cantata.audio.pcm import to_float
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import Samples, SpeechModel
from cantata.jobs.job import HeardWords, Job, JobFile, JobSentence, SpokenSentence
from cantata.jobs.results import ResultOptions, write_results
from cantata.jobs.speaking import gather_sound, speak_or_skip
from cantata.jobs.store import JobStore
from cantata.media.provenance import make_sound_tags

_OF_WHOLE_JOBS = {
    *("input", "title", "voices", "voice"),
    *("response_format", "sample_rate", "captions", "verify"),
}


class ServerNarrator:
    """Implements `jobs.speaking.Narrator` with the server's models, voices and lexicons."""

    def __init__(self, context: ApiContext, store: JobStore) -> None:
        self._context = context
        self._store = store

    async def speak(self, job: Job, sentence: JobSentence) -> SpokenSentence:
        body = JobBody.model_validate(job.options)
        speak = partial(self._speak, self._context.get_model(body.model), body)
        return await speak_or_skip(speak, sentence, job.shape.channels)

    async def write(self, job: Job) -> tuple[JobFile, ...]:
        body = JobBody.model_validate(job.options)
        options = choose_results(self._context, body)
        return await write_results(self._store, job, options, self._context.signer)

    async def _speak(
        self, model: SpeechModel, body: JobBody, sentence: JobSentence
    ) -> SpokenSentence:
        context = self._context
        validated = await validate_sentence(context, model, body, sentence)

        async def speak(request: SpeechRequest) -> tuple[SpokenSentence, Sequence[Samples]]:
            async with open_utterance(model, request, context.metrics) as utterance:
                spoken = await gather_sound(utterance.run, model.channels)
            return spoken, [to_float(spoken.samples)]

        spoken, found = await speak_verified(context, model, validated.request, body.verify, speak)
        if found is None:
            return spoken
        heard = HeardWords(len(found.words), tuple(found.missing), tuple(found.extra))
        return replace(spoken, heard=heard)


def choose_results(context: ApiContext, body: JobBody) -> ResultOptions:
    marked = context.settings.provenance != "off"
    tags = make_sound_tags(str(body.model)) if marked else ()
    form, rate = body.response_format, body.sample_rate
    return ResultOptions(form, rate, body.captions, tags)


async def validate_sentence(
    context: ApiContext, model: SpeechModel, body: JobBody, sentence: JobSentence
) -> ValidatedRequest:
    """The request of a sentence of a job. Raises InvalidRequest: an option, or the text, is not
    valid for the model."""
    voice: VoiceName | None = body.voices.get(sentence.speaker, body.voice)
    fields: dict[str, Any] = body.model_dump(exclude=_OF_WHOLE_JOBS)
    options = SpeechOptions.model_validate({**fields, "input": sentence.text, "voice": voice})
    validated = await validate_request(context, model, options)
    request = replace(validated.request, batch=True, continued=not sentence.begins)
    return replace(validated, request=request)
