"""The models that this server offers, behind the interface that the api speaks to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import psutil

from cantata.config import Dtype, load_deployment
from cantata.contract.chunks import Milestone
from cantata.contract.errors import InvalidRequest, ModelNotFound, StageDied, VoiceNotFound
from cantata.contract.markup import Pause
from cantata.contract.plugin import ModelPlugin, OpenRequestBuilder, RequestBuilder
from cantata.contract.request import SpeechRequest, Voice
from cantata.contract.service import ADMIT, TEXT, AdmissionReport, Samples, SpeechChunk, StageReport
from cantata.contract.steps import StepReport
from cantata.engine.open_text import OpenText, speak_open_text
from cantata.engine.orchestrator import Orchestrator
from cantata.engine.stage_handle import StageHandle, StageState
from cantata.engine.utterance import Piece, Playback, plan_utterance, spoken_words
from cantata.logs import LogFormat, new_work_id
from cantata.plugins import locate
from cantata.scheduling.admission import Admission, QueueLimits

DRAIN_DEADLINE_S = 5.0
MAX_WAIT_S = 8.0
"""For a place; voice agents give up on a server after ten."""
DEFAULT_MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""Names that clients send by habit; they mean whatever this server serves first."""


class PipelineUtterance:
    """One text being spoken: iterates over new sound, piece after piece."""

    def __init__(
        self,
        request_id: str,
        chunks: AsyncIterator[SpeechChunk],
        milestones: tuple[Milestone, ...],
    ) -> None:
        self.request_id = request_id
        self.milestones = milestones
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[SpeechChunk]:
        return self._chunks


class PipelineModel:
    """One served model: its plug-in's request builder and its pipeline's orchestrator."""

    def __init__(
        self,
        plugin: ModelPlugin,
        builder: RequestBuilder,
        orchestrator: Orchestrator,
        max_input_characters: int,
    ) -> None:
        self.name = plugin.name
        self.capabilities = builder.capabilities
        self.max_input_characters = max_input_characters
        self.orchestrator = orchestrator
        self._builder = builder
        self._admission: Admission | None = None

    @property
    def voices(self) -> tuple[Voice, ...]:
        """What callers may ask for, the default first."""
        return self._builder.voices

    @property
    def sample_rate(self) -> int:
        """Hz of everything that `speak` yields."""
        return self.orchestrator.output_capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        """1: samples are [N]; else [N, C]."""
        return self.orchestrator.output_capacity.channels

    @property
    def admission(self) -> AdmissionReport:
        """Who runs and who waits; no places before `start` is through."""
        if self._admission is None:
            return AdmissionReport(0, 0, 0, 0)
        slots, in_use = self.orchestrator.slots, self.orchestrator.slots_in_use
        return replace(self._admission.report, slots=slots, slots_in_use=in_use)

    def voice(self, name: str | None) -> Voice:
        """Look a voice up by id, name or alias; None is the default.

        Raises:
            VoiceNotFound: lists the valid ids.
        """
        if name is None:
            return self.voices[0]
        wanted = name.casefold()
        for voice in self.voices:
            if wanted in {n.casefold() for n in (voice.id, voice.name, *voice.aliases)}:
                return voice
        valid = ", ".join(voice.id for voice in self.voices)
        raise VoiceNotFound(f"model {self.name!r} has no voice {name!r}; voices: {valid}", "voice")

    async def start(self) -> None:
        """Start the pipeline, warm it up and measure what it can serve.

        As many requests are admitted as every stage keeps up with, at most its slots, and as many
        wait as there are slots.
        """
        await self.orchestrator.start()
        slots = self.orchestrator.slots
        await self._warm_up(1)
        await self._warm_up(slots)
        limits = QueueLimits(max_waiting=slots, max_wait_s=MAX_WAIT_S)
        self._admission = Admission(self.orchestrator.places, limits)
        self.orchestrator.on_places(self._admission.resize)

    async def _warm_up(self, utterances: int) -> None:
        """Speak to nobody, so many at once."""
        async with asyncio.TaskGroup() as group:
            for number in range(utterances):
                group.create_task(self._speak_to_nobody(), name=f"{self.name}:warm-up:{number}")

    async def _speak_to_nobody(self) -> None:
        request = self._builder.warm_up
        parts = await asyncio.to_thread(self._prepare, new_work_id(), request, False)
        async with aclosing(self._speak(parts)) as chunks:
            async for _ in chunks:
                pass

    @asynccontextmanager
    async def speak(
        self,
        request: SpeechRequest,
        *,
        batch: bool = False,
        more_text: AsyncIterator[str] | None = None,
    ) -> AsyncIterator[PipelineUtterance]:
        """Speak a text; leaving the block frees the request everywhere.

        Raises:
            ChunkTimeout: a text that is to go on has not begun in time.
            InvalidRequest: the text or an option cannot be served.
            Overloaded: no room now.
            StageDied: the model is not running.
        """
        if self._admission is None or not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")
        request_id = new_work_id()
        if more_text is None:
            # Text work is pure Python and may be long: it must not hold up other streams.
            parts = await asyncio.to_thread(self._prepare, request_id, request, batch)
            spoken = self._speak(parts)
        else:
            text = await self._begin(request_id, request, batch, more_text)
            spoken = speak_open_text(self.orchestrator, text)
        text_read = Milestone(TEXT, time.monotonic())
        async with self._admission.admit(batch=batch), aclosing(spoken) as chunks:
            admitted = Milestone(ADMIT, time.monotonic())
            yield PipelineUtterance(request_id, chunks, (text_read, admitted))

    async def _begin(
        self, request_id: str, request: SpeechRequest, batch: bool, more_text: AsyncIterator[str]
    ) -> OpenText:
        if not self.capabilities.open_text:
            raise InvalidRequest(f"model {self.name!r} speaks complete texts only", "input")
        self._check_length(len(request.text))
        builder = cast(OpenRequestBuilder, self._builder)
        feed = await asyncio.to_thread(builder.open, request_id, request)
        text = OpenText(feed, self._limited(len(request.text), more_text), batch=batch)
        await text.begin(self.orchestrator.chunk_timeout_s)
        return text

    async def _limited(
        self, length: int, more_text: AsyncIterator[str]
    ) -> AsyncGenerator[str, None]:
        async for text in more_text:
            length += len(text)
            self._check_length(length)
            yield text

    def _prepare(self, request_id: str, request: SpeechRequest, batch: bool) -> list[Piece | Pause]:
        self._check_length(len(request.text))
        return plan_utterance(self._builder, request_id, request, batch=batch)

    def _check_length(self, characters: int) -> None:
        if characters > self.max_input_characters:
            raise InvalidRequest(
                f"input has {characters} characters; "
                f"at most {self.max_input_characters} are accepted",
                "input",
            )

    async def _speak(self, parts: Sequence[Piece | Pause]) -> AsyncGenerator[SpeechChunk, None]:
        playback = Playback(self.sample_rate)
        for part in parts:
            if isinstance(part, Pause):
                silence = self._silence(part)
                playback.arrived(len(silence))
                yield SpeechChunk(silence)
                continue
            began_s = playback.length_s
            request = replace(part.request, runs_dry_s=playback.runs_dry_s)
            async with (
                self.orchestrator.open(request) as stream,
                aclosing(self.orchestrator.chunks(stream)) as chunks,
            ):
                async for chunk in chunks:
                    playback.arrived(len(chunk.samples))
                    words = spoken_words(part, chunk.words, began_s)
                    yield SpeechChunk(chunk.samples, words, chunk.milestones)

    def _silence(self, pause: Pause) -> Samples:
        length = round(pause.duration_s * self.sample_rate)
        return np.zeros(length if self.channels == 1 else (length, self.channels), np.float32)


class PipelineService:
    """Implements `contract.service.SpeechService` over pipelines in stage processes."""

    def __init__(self, models: Sequence[PipelineModel]) -> None:
        self.models: Mapping[str, PipelineModel] = {model.name: model for model in models}
        self.default_model = models[0].name

    @property
    def ready(self) -> bool:
        """Whether every model can speak."""
        return all(model.orchestrator.ready for model in self.models.values())

    def model(self, name: str) -> PipelineModel:
        """Look a model up by name.

        Raises:
            ModelNotFound: lists the served names.
        """
        if name in DEFAULT_MODEL_ALIASES:
            name = self.default_model
        if name not in self.models:
            raise ModelNotFound(f"no model {name!r}; served: {', '.join(self.models)}", "model")
        return self.models[name]

    async def start(self) -> None:
        """Start every model.

        Raises:
            StageDied: one could not start; nothing is left running.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for model in self.models.values():
                    group.create_task(model.start(), name=f"start:{model.name}")
        except ExceptionGroup as errors:
            await self.stop()
            raise errors.exceptions[0] from errors

    async def stop(self) -> None:
        """Drain and end every stage process."""
        pipelines = [model.orchestrator for model in self.models.values()]
        await asyncio.gather(*(pipeline.stop(DRAIN_DEADLINE_S) for pipeline in pipelines))

    async def stage_reports(self) -> list[StageReport]:
        """How every stage process is, and what it holds."""
        stages = [
            (model.name, stage)
            for model in self.models.values()
            for stage in model.orchestrator.stages.values()
        ]
        return list(await asyncio.gather(*(_report(model, stage) for model, stage in stages)))


async def _report(model: str, stage: StageHandle) -> StageReport:
    counts: Mapping[str, int] = {}
    steps: StepReport | None = None
    rss_bytes = 0
    if stage.state is StageState.READY:
        with contextlib.suppress(StageDied, psutil.Error):
            pong = await stage.ask()
            counts, steps = pong.counts, pong.steps
            rss_bytes = psutil.Process(stage.pid).memory_info().rss
    return StageReport(
        model=model,
        stage=stage.name,
        pid=stage.pid or 0,
        alive=stage.state is StageState.READY,
        startup_s=stage.startup_s,
        rss_bytes=rss_bytes,
        counts=counts,
        steps=steps,
    )


def create_service(
    model: str | None,
    deploy: Path | None,
    dtype: Dtype | None = None,
    log_format: LogFormat = LogFormat.TEXT,
) -> PipelineService:
    """Compose the service for one model; nothing runs before `start`.

    Args:
        model: a plug-in's name, a checkpoint folder or a hub's id; None serves the embedded voice.
        deploy: deployment file; None takes the plug-in's own.
        dtype: of the AR stages; None: what the deployment says.
        log_format: of the stage processes.

    Raises:
        ConfigError: no such model, or the deployment is not valid.
    """
    located = locate(model)
    plugin = located.plugin
    deployment = load_deployment(deploy or plugin.deployment, plugin.pipeline)
    if dtype is not None:
        deployment = deployment.with_dtype(dtype)
    log_level = logging.getLogger().getEffectiveLevel()
    orchestrator = Orchestrator(
        plugin.pipeline, located.checkpoint, deployment, log_level, log_format
    )
    builder = plugin.load_builder(located.checkpoint)
    served = PipelineModel(plugin, builder, orchestrator, deployment.max_input_characters)
    return PipelineService([served])
