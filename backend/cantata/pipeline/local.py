"""One model in this process, for one listener: what `cantata say` speaks with.

The stages are the served ones, stepped here in turn instead of in processes of their own; only an
AR stage's engine is the plain one, without vLLM. In float32 the samples are those of a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np

from cantata.config import (
    KINDS,
    ArDeployment,
    CodecDeployment,
    Deployment,
    FeedForwardDeployment,
    StageDeployment,
    load_deployment,
)
from cantata.config.plugins import LocatedModel, list_embedded_models, locate
from cantata.contract.catalogue import find_voice, with_aliases
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import RequestFailed, VoiceNotFound
from cantata.contract.data.request import SpeechRequest, Voice, check_text_length
from cantata.contract.model.factory import resolve
from cantata.contract.model.pipeline import CLIENT, PipelineSpec, StageSpec
from cantata.contract.process.stage import Stage
from cantata.contract.service import Samples, SpeechChunk
from cantata.pipeline.devices import check_devices
from cantata.pipeline.segments import TextSegment, locate_words, plan_segments
from cantata.text import TextPause
from cantata.utils.logs import make_work_id


def find_model(voice: str) -> str | None:
    """The embedded model that has a voice; None: the default, which has it or is to refuse it."""
    for name in list_embedded_models():
        located = locate(name)
        if located.plugin.load_builder is None:
            continue
        builder = located.plugin.speech_builder(located.checkpoint)
        with suppress(VoiceNotFound):
            find_voice(builder.voices, voice, name, blends=builder.capabilities.voice_blends)
            return None if located.plugin.is_default else name
    return None


class LocalModel:
    """A model that speaks in this process. Construction is fast; `load` takes the time.

    Raises:
        ConfigError: the plug-in's deployment or the checkpoint is not valid.
    """

    def __init__(self, located: LocatedModel) -> None:
        plugin = located.plugin
        self._pipeline, self._checkpoint = located.pipeline, located.checkpoint
        self._deployment = _limit_to_one(load_deployment(plugin.deployment, plugin.pipeline))
        check_devices(self._deployment)
        self._builder = plugin.speech_builder(located.checkpoint)
        self._name = plugin.name
        aliases = self._deployment.voice_aliases
        self._voices = with_aliases(self._builder.voices, aliases, plugin.name)
        self._stages: list[Stage] = []

    @property
    def is_possible(self) -> bool:
        """Whether the model declares that it can make the same samples without a server."""
        return _is_straight(self._pipeline) and all(
            _is_simple(spec, self._deployment.stages[spec.name]) for spec in self._pipeline.stages
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._builder.capabilities

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The model's voices, with the deployment's aliases, the default first."""
        return self._voices

    def plan(self, request: SpeechRequest) -> list[TextSegment | TextPause]:
        """Check a request and build its segments; nothing heavy is imported.

        Args:
            request: its `voice` may be any of a voice's names; empty is the default voice.

        Raises:
            VoiceNotFound: there is no such voice.
            InvalidRequest: nothing can be spoken, or an option cannot be served.
        """
        max_characters = self._deployment.max_input_characters
        check_text_length(len(request.text), max_characters, may_be_empty=request.continued)
        blends = self._builder.capabilities.voice_blends
        voice = find_voice(self._voices, request.voice or None, self._name, blends=blends)
        return plan_segments(self._builder, make_work_id(), replace(request, voice=voice.id))

    def load(self) -> bool:
        """Build the stages; False: this machine lacks a requirement, so a server must be used.
        Raises ConfigError: a stage cannot be built from the checkpoint."""
        from cantata.stages.process.launch import settle_threads

        settle_threads()
        stages = [self._build_stage(spec) for spec in self._pipeline.stages]
        self._stages = [stage for stage in stages if stage is not None]
        return len(self._stages) == len(stages)

    def _build_stage(self, spec: StageSpec) -> Stage | None:
        """None: this machine cannot run it in this process."""
        deployment = self._deployment.stages[spec.name]
        if isinstance(deployment, ArDeployment):
            from cantata.stages.ar import build_plain_stage

            return build_plain_stage(spec, self._checkpoint, deployment)
        build: Callable[..., Stage] = resolve(KINDS[spec.kind].builder)
        return build(spec, self._checkpoint, deployment)

    @property
    def sample_rate(self) -> int:
        """Hz; once loaded."""
        return self._stages[-1].capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        """Once loaded."""
        return self._stages[-1].capacity.channels

    async def speak(
        self, parts: Sequence[TextSegment | TextPause]
    ) -> AsyncGenerator[SpeechChunk, None]:
        """New sound of what was planned, as it is made; in a worker thread, so that other tasks can
        run. Raises RequestFailed: a stage could not finish it."""
        length = 0
        for part in parts:
            if isinstance(part, TextPause):
                chunk = SpeechChunk(self._build_silence(part))
                length += len(chunk.samples)
                yield chunk
                continue
            began_s = length / self.sample_rate
            async with aclosing(self._play_at_pace(part)) as chunks:
                async for output in chunks:
                    sound = output.payload
                    length += sound.units
                    yield SpeechChunk(sound.samples, locate_words(part, sound.words, began_s))

    def _build_silence(self, pause: TextPause) -> Samples:
        length = round(pause.duration_s * self.sample_rate)
        return np.zeros((length, self.channels), np.float32)

    def _play_at_pace(self, segment: TextSegment) -> AsyncGenerator[Chunk[Pcm], None]:
        output, factor = self._iterate_sound(segment), segment.request.stretch
        if factor != 1.0:
            from cantata.pipeline.time_stretch import stretch_time

            output = stretch_time(output, factor, self._stages[-1].capacity)
        return _run_in_thread(output)

    def _iterate_sound(self, segment: TextSegment) -> Iterator[Chunk[Pcm]]:
        request, last = segment.request, self._stages[-1]
        for spec, stage in reversed(list(zip(self._pipeline.stages, self._stages, strict=True))):
            stage.add(request.request_id, request.inputs.get(spec.name), batch=False)
        try:
            while True:
                for chunk in self._step():
                    last.credit(request.request_id, chunk.payload.units)
                    if chunk.payload.units or chunk.payload.words:
                        yield chunk
                    if chunk.final:
                        return
        finally:
            for stage in self._stages:
                stage.abort(request.request_id)

    def _step(self) -> list[Chunk[Pcm]]:
        """One step of every stage that has work; returns the output of the last one."""
        output: Sequence[Chunk[Payload]] = ()
        stepped = False
        for index, stage in enumerate(self._stages):
            output = ()
            if stage.has_work():
                stepped = True
                result = stage.step()
                for _, error in result.failures:
                    raise error
                output = result.chunks
                if index + 1 < len(self._stages):
                    self._stages[index + 1].receive(result.chunks)
        if not stepped:
            raise RequestFailed("no stage has anything to do, and the sound has no end")
        return [cast(Chunk[Pcm], chunk) for chunk in output]


async def _run_in_thread(chunks: Iterator[Chunk[Pcm]]) -> AsyncGenerator[Chunk[Pcm], None]:
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk


def find_local_model(model: str | None) -> LocalModel | None:
    """The model to speak with in this process; None: it needs a server.

    Args:
        model: a plug-in's name, a checkpoint folder or a hub's id; None is the embedded voice.

    Raises:
        ConfigError: no such model, or its deployment or checkpoint is not valid.
    """
    local = LocalModel(locate(model))
    return local if local.is_possible else None


def _is_straight(pipeline: PipelineSpec) -> bool:
    """Whether every stage feeds only the next one, and the client hears the last."""
    names = [stage.name for stage in pipeline.stages]
    edges = [(edge.stage, edge.target) for edge in pipeline.edges]
    return edges == list(pairwise([*names, CLIENT])) and pipeline.sound.stage == names[-1]


def _is_simple(spec: StageSpec, deployment: StageDeployment) -> bool:
    """Whether the stage runs here as it does in a server."""
    if isinstance(deployment, ArDeployment):
        same = not deployment.on_gpu and deployment.dtype == "float32"
        return same and deployment.quantization is None and spec.plain is not None
    return isinstance(deployment, CodecDeployment | FeedForwardDeployment) and not deployment.on_gpu


def _limit_to_one(deployment: Deployment) -> Deployment:
    """The deployment with memory for a single listener."""
    stages = {
        name: stage.model_copy(update={"slots": 1}) for name, stage in deployment.stages.items()
    }
    return deployment.model_copy(update={"stages": stages})
