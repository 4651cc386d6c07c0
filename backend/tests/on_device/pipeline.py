"""The stages of a model without processes, and requests through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import torch

from cantata.config import (
    ArDeployment,
    CodecDeployment,
    Deployment,
    DiffusionDeployment,
    FeedForwardDeployment,
    StageDeployment,
    load_deployment,
)
from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.factory import resolve
from cantata.contract.model.feed_forward import Synthesizer
from cantata.contract.model.pipeline import CODES, LATENTS, PROGRESS, ROWS, StageSpec
from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.contract.process.stage import Stage
from cantata.stages.ar import limit_positions
from cantata.stages.codec.stage import CodecStage, load_decoder
from cantata.stages.diffusion.forwards import Leaves
from cantata.stages.diffusion.stage import DiffusionStage
from cantata.stages.feed_forward.stage import FeedForwardStage
from cantata.stages.feed_forward.synthesis import SynthesisStage
from on_device.short_source import ShortSource
from pretended_device import Move

SLOTS = 4
MAX_FRAMES = 3
"""Of a request: random weights do not end a text by themselves."""
ENOUGH = 1 << 30
"""Samples of credit."""


@dataclass
class Waits:
    """What made the host wait inside the calls that every stream waits for."""

    moves: list[Move]
    """As they happen; on a CPU there are none."""
    found: list[Move] = field(default_factory=list)

    def watch(
        self, owner: Any, *names: str, results: bool = False, is_captured: bool = False
    ) -> None:
        """Look at all calls of these methods.

        Args:
            results: whether they bring results to the host.
            is_captured: a graph holds them: what they copied from the host would never change.
        """
        for name in names:
            if (method := getattr(owner, name, None)) is not None:
                setattr(owner, name, self._watched(method, results, is_captured))

    def _watched(
        self, method: Callable[..., Any], results: bool, is_captured: bool
    ) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before = len(self.moves)
            made = method(*args, **kwargs)
            waits = (move for move in self.moves[before:] if move.waits or is_captured)
            self.found += [move for move in waits if not (results and move.what == "to host")]
            return made

        return call


def build_stages(
    located: LocatedModel, device: torch.device, waits: Waits, engine: str
) -> dict[str, Stage]:
    """All stages of a model in float32 on one device, by name; AR stages with this engine."""
    pipeline = located.pipeline
    deployment: Deployment = load_deployment(located.plugin.deployment, located.plugin.pipeline)
    deployment = deployment.with_dtype("float32")
    return {
        stage.name: _build(
            stage, located, _small(deployment.stages[stage.name], engine), device, waits
        )
        for stage in pipeline.stages
    }


def _small(deployment: StageDeployment, engine: str) -> Any:
    chosen = {"engine": engine} if isinstance(deployment, ArDeployment) else {}
    return deployment.model_copy(update={"slots": SLOTS, **chosen})


def _build(
    spec: StageSpec, located: LocatedModel, deployment: Any, device: torch.device, waits: Waits
) -> Stage:
    clock = count(step=0.5).__next__
    match deployment:
        case ArDeployment():
            return _build_ar(spec, located, deployment, device, waits)
        case CodecDeployment():
            decoder = load_decoder(spec, located.checkpoint, device)
            stage = CodecStage(decoder, deployment, clock, device=device)
            # It waits for an event alone, once: of the copy of the samples.
            waits.watch(stage._decoding, "decode")
            return stage
        case FeedForwardDeployment():
            model = resolve(spec.factory)(located.checkpoint, device)
            if isinstance(model, Synthesizer):
                return SynthesisStage(model, next(iter(spec.ports)), deployment)
            return FeedForwardStage(model, spec.ports, deployment)
        case DiffusionDeployment():
            options = DenoiserOptions(device=str(device), dtype="float32")
            model = resolve(spec.factory)(located.checkpoint, options)
            # Each token that it writes decides what it reads next, and whether it has ended.
            waits.watch(model, "advance", results=CODES in spec.ports)
            leaves = Leaves(latents=LATENTS in spec.ports, text=CODES in spec.ports)
            shows = PROGRESS in spec.ports
            return DiffusionStage(model, deployment, clock, leaves=leaves, shows_progress=shows)
    raise NotImplementedError(f"stages of {type(deployment).__name__}")


def _build_ar(
    spec: StageSpec,
    located: LocatedModel,
    deployment: ArDeployment,
    device: torch.device,
    waits: Waits,
) -> Stage:
    if deployment.engine == "graphs":
        return _build_graph_engine(spec, located, deployment, device, waits)
    # vLLM reads the environment when it is imported, and these import it.
    from cantata.stages.ar.stage import ArStage
    from on_device.talker import DeviceEngine

    talker, checkpoint = resolve(spec.factory), located.checkpoint
    deployment = limit_positions(deployment, talker, checkpoint)
    engine = DeviceEngine(spec.factory, checkpoint, deployment, device, MAX_FRAMES)
    waits.watch(engine.talker.talker_step, "input_rows", "rotary_positions", "sample")
    waits.watch(engine.talker.talker_step.states, "add")
    if talker.records_forward:
        waits.watch(engine.talker, "forward", is_captured=True)
    return ArStage(engine, deployment, exports_rows=ROWS in spec.ports)


def _build_graph_engine(
    spec: StageSpec,
    located: LocatedModel,
    deployment: ArDeployment,
    device: torch.device,
    waits: Waits,
) -> Stage:
    """With batches padded as on a GPU, and torch's kernels."""
    from cantata.stages.ar.graph_engine import GraphEngine
    from cantata.stages.ar.stage import ArStage
    from cantata.stages.ar.step_graphs import StepShapes
    from cantata.stages.ar.torch_kernels import TorchKernels

    assert spec.plain is not None
    kernels = TorchKernels(torch.float32)
    options = PlainTalkerOptions(kernels, device, torch.float32, deployment.max_model_len)
    talker = resolve(spec.plain)(located.checkpoint, options)
    talker.open = partial(ShortSource, talker.open, MAX_FRAMES)
    deployment = deployment.model_copy(update={"max_model_len": talker.max_positions})
    shapes = StepShapes(deployment.slots, deployment.max_model_len)
    engine = GraphEngine(talker, deployment, device, shapes)
    engine.record(deployment.sampling)
    waits.watch(engine, "step")
    waits.watch(engine.talker.talker_step.states, "add")
    return ArStage(engine, deployment)


def run(
    located: LocatedModel, stages: Mapping[str, Stage], requests: Sequence[PipelineRequest]
) -> dict[str, list[Payload]]:
    """Run requests together to their ends.

    Returns:
        By `request/stage.port`, what left there.
    """
    pipeline, made = located.pipeline, dict[str, list[Payload]]()
    for request in requests:
        for spec in reversed(pipeline.taking_part(request.inputs, request.without)):
            stage = stages[spec.name]
            stage.add(request.request_id, request.inputs.get(spec.name), batch=False)
            stage.credit(request.request_id, ENOUGH)
    without = {request.request_id: request.without for request in requests}
    idle = 0
    while idle < 100:  # a codec may hold a first packet until its clock has gone on
        idle += 1
        for spec in pipeline.stages:
            if not stages[spec.name].has_work():
                continue
            idle = 0
            result = stages[spec.name].step()
            for _, error in result.failures:
                raise error
            for chunk in result.chunks:
                source = f"{spec.name}.{chunk.port}"
                if source in without[chunk.request_id]:
                    continue
                made.setdefault(f"{chunk.request_id}/{source}", []).append(chunk.payload)
                _deliver(located, stages, source, chunk, without[chunk.request_id])
        if not any(sum(stage.get_counts().values()) for stage in stages.values()):
            return made
    held = {name: dict(stage.get_counts()) for name, stage in stages.items()}
    raise AssertionError(f"no stage has anything to do, and not all has ended: {held}")


def _deliver(
    located: LocatedModel,
    stages: Mapping[str, Stage],
    source: str,
    chunk: Chunk[Payload],
    without: frozenset[str],
) -> None:
    for edge in located.pipeline.edges:
        if edge.source == source and edge.target in stages and edge.target not in without:
            stages[edge.target].receive([chunk])


@contextmanager
def in_one_process(located: LocatedModel) -> Iterator[None]:
    """Where all stages of a model can be built, vLLM's too."""
    from cantata.stages.ar.environment import prepare_environment

    kinds = {spec.kind.value for spec in located.pipeline.stages}
    if "ar" not in kinds:
        yield
        return
    prepare_environment()
    from on_device.talker import vllm_layers

    with vllm_layers():
        yield
