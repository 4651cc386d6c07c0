"""The models that this server offers, behind the interface that the api speaks to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.contract.errors import InvalidRequest, ModelNotFound, StageDied, VoiceNotFound
from cantata.contract.plugin import ModelPlugin, RequestBuilder
from cantata.contract.request import PipelineRequest, SpeechRequest, Voice
from cantata.contract.service import StageReport
from cantata.engine.orchestrator import Orchestrator
from cantata.engine.stage_handle import StageHandle, StageState
from cantata.plugins import locate
from cantata.scheduling.admission import Admission

DRAIN_DEADLINE_S = 5.0
MAX_WAIT_S = 5.0
MAX_INPUT_CHARACTERS = 4096
"""OpenAI's documented limit."""
DEFAULT_MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""Names that clients send by habit; they mean whatever this server serves first."""


class PipelineUtterance:
    """One text being spoken: iterates over new samples, piece after piece."""

    def __init__(self, request_id: str, samples: AsyncIterator[NDArray[np.float32]]) -> None:
        self.request_id = request_id
        self._samples = samples

    def __aiter__(self) -> AsyncIterator[NDArray[np.float32]]:
        return self._samples


class PipelineModel:
    """One served model: its plug-in's request builder and its pipeline's orchestrator."""

    max_input_characters = MAX_INPUT_CHARACTERS

    def __init__(
        self, plugin: ModelPlugin, builder: RequestBuilder, orchestrator: Orchestrator
    ) -> None:
        self.name = plugin.name
        self._warm_up_text = plugin.warm_up_text
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
    def waiting(self) -> int:
        """Requests in the admission queue."""
        return self._admission.waiting if self._admission else 0

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
        """Start the pipeline; requests are admitted up to its slots, as many again wait."""
        await self.orchestrator.start()
        slots = self.orchestrator.slots
        self._admission = Admission(slots, max_waiting=slots, max_wait_s=MAX_WAIT_S)
        request = SpeechRequest(self._warm_up_text, self.voices[0].id)
        async with self.speak(request) as utterance:
            async for _ in utterance:
                pass

    @asynccontextmanager
    async def speak(
        self, request: SpeechRequest, *, batch: bool = False
    ) -> AsyncIterator[PipelineUtterance]:
        """Speak a text; leaving the block frees the request everywhere.

        Raises:
            InvalidRequest: the text or an option cannot be served.
            Overloaded: no room now.
            StageDied: the model is not running.
        """
        if self._admission is None or not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")
        request_id = uuid.uuid4().hex
        # Text work is pure Python and may be long: it must not hold up other streams.
        pieces = await asyncio.to_thread(self._prepare, request_id, request, batch)
        async with (
            self._admission.admit(),
            aclosing(self._samples(pieces)) as samples,
        ):
            yield PipelineUtterance(request_id, samples)

    def _prepare(
        self, request_id: str, request: SpeechRequest, batch: bool
    ) -> list[PipelineRequest]:
        if len(request.text) > self.max_input_characters:
            raise InvalidRequest(
                f"input has {len(request.text)} characters; "
                f"at most {self.max_input_characters} are accepted",
                "input",
            )
        pieces = self._builder.build(request_id, request)
        return [replace(piece, batch=batch) for piece in pieces]

    async def _samples(
        self, pieces: Sequence[PipelineRequest]
    ) -> AsyncGenerator[NDArray[np.float32], None]:
        for piece in pieces:
            async with (
                self.orchestrator.open(piece) as stream,
                aclosing(self.orchestrator.samples(stream)) as samples,
            ):
                async for new in samples:
                    yield new


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
    rss_bytes = 0
    if stage.state is StageState.READY:
        with contextlib.suppress(StageDied, psutil.Error):
            counts = await stage.counts()
            rss_bytes = psutil.Process(stage.pid).memory_info().rss
    return StageReport(
        model=model,
        stage=stage.name,
        pid=stage.pid or 0,
        alive=stage.state is StageState.READY,
        startup_s=stage.startup_s,
        rss_bytes=rss_bytes,
        counts=counts,
    )


def create_service(model: str | None, deploy: Path | None) -> PipelineService:
    """Compose the service for one model; nothing runs before `start`.

    Args:
        model: a plug-in's name or a checkpoint folder; None serves the embedded voice.
        deploy: deployment file; None takes the plug-in's own.

    Raises:
        ConfigError: no such model, or the deployment is not valid.
    """
    located = locate(model)
    plugin = located.plugin
    deployment = load_deployment(deploy or plugin.deployment, plugin.pipeline)
    log_level = logging.getLogger().getEffectiveLevel()
    orchestrator = Orchestrator(plugin.pipeline, located.checkpoint, deployment, log_level)
    builder = plugin.load_builder(located.checkpoint)
    return PipelineService([PipelineModel(plugin, builder, orchestrator)])
