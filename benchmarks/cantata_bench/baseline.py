"""The baseline: a pipeline's stages, stepped in one process without server, sockets or listeners.

It drives `contract.process.stage.Stage` objects built as the stage processes build them, so it
measures the same weights and the same code whatever the model.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from cantata.config import Deployment, load_deployment
from cantata.config.plugins import LocatedModel, locate
from cantata.contract.data.chunks import Chunk, Codes, Image, Payload, Pcm, Progress
from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata.contract.model.pipeline import CLIENT, CODES, PipelineSpec
from cantata.contract.model.plugin import RequestBuilder
from cantata.contract.process.stage import Stage
from cantata.stages.process.exchange import UNLIMITED_CREDIT
from cantata.stages.process.launch import build_stage, settle_threads
from cantata.stages.process.measuring import count_frames
from cantata_bench.results import BareBatch, FirstPacket, ServerlessBaseline, StepTime
from cantata_bench.texts import text_set

_ROUNDS = 6
"""Requests per place in each batch; the first is warm-up."""
_ALONE = 12
_GRID_ROWS = (1, 4, 8, 16)
_GRID_FRAMES = (1, 2, 4, 8)
_GRID_REPEATS = 6


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Times of one step of one stage."""

    stage: str
    rows: int
    frames: int
    seconds: float
    begins: bool
    """Whether it is the first step of one of its requests."""


@dataclass(slots=True)
class BarePipeline:
    """Every stage of a pipeline in this process, stepped in turn."""

    pipeline: PipelineSpec
    stages: Mapping[str, Stage]
    """Steps by stage, in the pipeline's order."""
    steps: list[StepTimes] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)
    """Stage and request of each first step."""

    @property
    def slots(self) -> int:
        """Requests that fit at once."""
        return min(stage.capacity.slots for stage in self.stages.values())

    @property
    def names(self) -> tuple[str, str]:
        """Names of the first and the last stage."""
        return self.pipeline.stages[0].name, self.pipeline.sound.stage

    @property
    def frame_period_s(self) -> float:
        """Seconds of sound in a frame of the last stage."""
        period_s = self.stages[self.names[1]].capacity.frame_period_s
        assert period_s is not None, "a stage that makes sound has frames"
        return period_s

    def add(self, request: PipelineRequest) -> None:
        """Register a request with its stages, the last one first."""
        for spec in reversed(self.pipeline.taking_part(request.inputs)):
            payload = request.inputs.get(spec.name)
            self.stages[spec.name].add(request.request_id, payload, batch=False)
        if self.pipeline.makes_sound:
            self.stages[self.names[1]].credit(request.request_id, UNLIMITED_CREDIT)

    def step(self) -> list[Chunk[Payload]]:
        """Each stage that has work makes one step. Returns what is new of sound, pictures and
        their progress.

        Raises:
            ConfigError: a stage could not speak one of the texts.
        """
        received: list[Chunk[Payload]] = []
        for name, stage in self.stages.items():
            if stage.has_work():
                received.extend(self._pass_on(name, self.run_step(name)))
        return received

    def run_step(self, name: str) -> Sequence[Chunk[Payload]]:
        """Measure one step of one stage."""
        stage = self.stages[name]
        began = time.perf_counter()
        result = stage.step()
        seconds = time.perf_counter() - began
        if result.failures:
            raise ConfigError(f"stage {name!r} failed: {result.failures[0][1]}")
        rows = {f"{name}/{chunk.request_id}" for chunk in result.chunks}
        begins = not rows <= self._begun
        self._begun |= rows
        frames = count_frames(result.chunks, stage.capacity)
        self.steps.append(StepTimes(name, len(rows), frames, seconds, begins))
        return result.chunks

    def _pass_on(self, name: str, chunks: Sequence[Chunk[Payload]]) -> list[Chunk[Payload]]:
        for edge in self.pipeline.get_outputs(name):
            if edge.target != CLIENT:
                self.stages[edge.target].receive([c for c in chunks if c.port == edge.port])
        return [chunk for chunk in chunks if isinstance(chunk.payload, Pcm | Image | Progress)]

    def close(self) -> None:
        """End every stage."""
        for stage in self.stages.values():
            stage.close()


def load_bare(model: str | None) -> tuple[BarePipeline, RequestBuilder]:
    """A model's stages and its text processing, in this process.

    Args:
        model: as `cantata serve --model` takes it.
    """
    located = locate(model)
    plugin = located.plugin
    deployment = load_deployment(plugin.deployment, plugin.pipeline)
    return load_stages(located, deployment), plugin.speech_builder(located.checkpoint)


def load_stages(located: LocatedModel, deployment: Deployment) -> BarePipeline:
    """A model's stages, in this process."""
    settle_threads()
    stages = {
        spec.name: build_stage(spec, located.checkpoint, deployment.stages[spec.name])
        for spec in located.pipeline.stages
    }
    return BarePipeline(located.pipeline, stages)


def measure_floor(model: str | None, batches: Sequence[int], seed: int) -> ServerlessBaseline:
    """Run the bare loop; in a process of its own, since it loads the model.

    Args:
        model: as `cantata serve --model` takes it.
        batches: requests at a time; those beyond the deployment's slots are left out.
        seed: of the texts' order.
    """
    bare, builder = load_bare(model)
    return measure_bare(bare, builder, batches, seed)


def measure_bare(
    bare: BarePipeline, builder: RequestBuilder, batches: Sequence[int], seed: int
) -> ServerlessBaseline:
    """Run stages that are built, and close them."""
    try:
        requests = _make_requests(builder, seed)
        first = _measure_first_packet(bare, builder, requests, seed)
        measured = [
            _measure_batch(bare, requests, streams)
            for streams in sorted({min(streams, bare.slots) for streams in batches})
        ]
        _measure_grid(bare, requests)
        talker, decoder = bare.names
        return ServerlessBaseline(
            frame_period_s=bare.frame_period_s,
            talker=talker,
            decoder=decoder,
            first_packet=first,
            batches=tuple(measured),
            steps=_step_times(bare.steps, talker),
        )
    finally:
        bare.close()


def _make_requests(builder: RequestBuilder, seed: int) -> Iterator[PipelineRequest]:
    """Pieces of the medium texts, in every voice, without end."""
    voices = itertools.cycle(builder.voices)
    for number, text in enumerate(itertools.cycle(text_set("medium", seed))):
        yield from builder.build(f"bare-{number}", SpeechRequest(text, next(voices).id))


def _measure_first_packet(
    bare: BarePipeline, builder: RequestBuilder, requests: Iterator[PipelineRequest], seed: int
) -> FirstPacket:
    texts = itertools.cycle(text_set("medium", seed))
    found: list[FirstPacket] = []
    for number in range(_ALONE):
        began = time.perf_counter()
        builder.build(f"text-{number}", SpeechRequest(next(texts), builder.voices[0].id))
        text_s = time.perf_counter() - began
        found.append(_measure_alone(bare, next(requests), text_s))
    warm = found[_ALONE // 3 :]
    fields = FirstPacket.model_fields
    return FirstPacket(**{name: median(getattr(one, name) for one in warm) for name in fields})


def _measure_alone(bare: BarePipeline, request: PipelineRequest, text_s: float) -> FirstPacket:
    before = len(bare.steps)
    began = time.perf_counter()
    bare.add(request)
    prompt_s = time.perf_counter() - began
    while not bare.step():
        pass
    total_s = time.perf_counter() - began
    took: dict[str, float] = defaultdict(float)
    for step in bare.steps[before:]:
        took[step.stage] += step.seconds
    while any(stage.has_work() for stage in bare.stages.values()):
        bare.step()
    talker, decoder = bare.names
    return FirstPacket(
        text_s=text_s,
        prompt_s=prompt_s,
        first_step_s=took[talker],
        codec_step_s=took[decoder],
        total_s=total_s,
    )


def _measure_batch(
    bare: BarePipeline, requests: Iterator[PipelineRequest], streams: int
) -> BareBatch:
    """Closed loop: as soon as one request ends, the next takes its place."""
    for request in itertools.islice(requests, streams):
        bare.add(request)
    ended = 0
    while ended < streams:  # warm-up, and the streams drift apart
        ended += _refill(bare, requests, bare.step())
    first_step = len(bare.steps)
    began, ended, frames = time.perf_counter(), 0, 0
    while ended < (_ROUNDS - 1) * streams:
        chunks = bare.step()
        frames += count_frames(chunks, bare.stages[bare.names[1]].capacity)
        ended += _refill(bare, requests, chunks)
    wall_s = time.perf_counter() - began
    busy: dict[str, float] = defaultdict(float)
    for step in bare.steps[first_step:]:
        busy[step.stage] += step.seconds
    while any(stage.has_work() for stage in bare.stages.values()):
        bare.step()
    audio_s = frames * bare.frame_period_s
    return BareBatch(
        streams=streams,
        throughput_x=audio_s / wall_s,
        slowest_stage_x=audio_s / max(busy.values()),
    )


def _refill(
    bare: BarePipeline, requests: Iterator[PipelineRequest], chunks: Sequence[Chunk[Payload]]
) -> int:
    ended = sum(chunk.final for chunk in chunks)
    for _ in range(ended):
        bare.add(next(requests))
    return ended


def _measure_grid(bare: BarePipeline, requests: Iterator[PipelineRequest]) -> None:
    """The last stage alone, with more frames of each request than the loop ever leaves waiting."""
    talker, decoder = (bare.stages[name] for name in bare.names)
    if talker is decoder:
        return
    frames = _make_frames(talker, bare.names[0], next(requests), max(_GRID_FRAMES))
    for rows in (r for r in _GRID_ROWS if r <= bare.slots):
        for length in _GRID_FRAMES:
            for repeat in range(_GRID_REPEATS):
                ids = [f"grid-{rows}-{length}-{repeat}-{row}" for row in range(rows)]
                _decode_together(bare, decoder, ids, frames, length)


def _make_frames(talker: Stage, name: str, request: PipelineRequest, count: int) -> Codes:
    """This many frames of one request, repeated if it is shorter."""
    parts: list[Codes] = []
    talker.add(request.request_id, request.inputs.get(name), batch=False)
    while talker.has_work():
        output = [chunk.payload for chunk in talker.step().chunks]
        parts.extend(payload for payload in output if isinstance(payload, Codes))
    rows = [row for part in parts for row in part.values]
    return Codes(np.stack((rows * count)[:count]))


def _decode_together(
    bare: BarePipeline, decoder: Stage, ids: Sequence[str], frames: Codes, length: int
) -> None:
    """Decode as file renders, which may be decoded in long chunks from the start."""
    for request_id in ids:
        decoder.add(request_id, None, batch=True)
        decoder.credit(request_id, UNLIMITED_CREDIT)
        part = Codes(frames.values[:length])
        decoder.receive([Chunk(request_id, CODES, 0, part, False)])
    while decoder.has_work():
        bare.run_step(bare.names[1])
    for request_id in ids:
        decoder.abort(request_id)


def _step_times(steps: Sequence[StepTimes], talker: str) -> tuple[StepTime, ...]:
    """Medians by shape; the talker's steps that take prompts in are left out."""
    by_shape: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for step in steps:
        if step.rows and not (step.begins and step.stage == talker):
            by_shape[step.stage, step.rows, step.frames].append(step.seconds)
    return tuple(
        StepTime(stage=stage, rows=rows, frames=frames, seconds=median(took), count=len(took))
        for (stage, rows, frames), took in sorted(by_shape.items())
    )
