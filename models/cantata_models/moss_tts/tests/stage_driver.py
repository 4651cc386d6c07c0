"""Runs requests through the real stages of tiny checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment, CodecDeployment, FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Codes, Payload
from cantata.contract.data.request import (
    PipelineRequest,
    ReferenceAudio,
    SpeechRequest,
    StageInput,
)
from cantata.contract.model.talker import FrameDraws
from cantata.contract.process.stage import Stage
from cantata.stages import codec, feed_forward
from cantata.stages.ar import build_stage
from cantata_models.moss_tts.plugin import CODEC, ENCODER, LOCAL, NANO, TALKER
from cantata_models.moss_tts.prompt import Fields, MossMode
from cantata_models.moss_tts.random_checkpoint import write_tiny_local, write_tiny_nano
from cantata_models.moss_tts.request_builder import MossRequestBuilder
from cantata_models.moss_tts.tests.parity.recordings import SAMPLE_RATE, stereo_recording
from cantata_models.moss_tts.tests.parity.scenarios import Model, MossScenario, recorded
from model_engines import Checkpoints, decode, join, run, step

DEPLOYMENT = ArDeployment(slots=8, max_model_len=512)
PLUGINS = {Model.LOCAL: LOCAL, Model.NANO: NANO}
WRITERS = {Model.LOCAL: write_tiny_local, Model.NANO: write_tiny_nano}

CodeArray = NDArray[np.int32]
Inputs = Mapping[str, StageInput]
Frames = Sequence[NDArray[np.int64]]


@dataclass(slots=True)
class MossObserved:
    """The scores of one request, by frame."""

    stops: list[NDArray[np.float32]] = field(default_factory=list)
    """[2] each."""
    codes: list[list[NDArray[np.float32]]] = field(default_factory=list)
    """[V] each, by codebook."""


@dataclass(frozen=True, slots=True)
class MossStages:
    """A checkpoint's stages."""

    builder: MossRequestBuilder[Any]
    encoder: Stage
    talker: Stage
    codec: Stage

    @property
    def network(self) -> Any:
        """The `MossTalker` that vLLM runs, with the engine's mixins."""
        return self.talker._talker  # type: ignore[attr-defined]

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed."""
        return (self.encoder, self.talker, self.codec)

    def parts(self, request: SpeechRequest) -> list[Inputs]:
        """Return the stages' inputs for each part of a request."""
        return [built.inputs for built in self.built(request)]

    def built(self, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """Return a request's parts."""
        return self.builder.build("request", request)

    def encoded(self, name: str, inputs: Inputs) -> Sequence[Chunk[Payload]]:
        """Return what the encoder stage makes of a request's recording, if it has one."""
        if ENCODER not in inputs:
            return ()
        self.encoder.add(name, inputs[ENCODER], batch=False)
        return step(self.encoder)

    def talk(self, requests: Mapping[str, Inputs], *given: NDArray[Any]) -> list[Chunk[Payload]]:
        """Run requests together in the talker stage until all end.

        Args:
            requests: inputs by request id.
            given: frames to use instead of those of the recordings.
        """
        for name, inputs in requests.items():
            self.talker.add(name, inputs[TALKER], batch=False)
            frames = [Codes(codes.astype(np.int32)) for codes in given]
            chunks = [Chunk(name, "frames", 0, codes, final=True) for codes in frames]
            self.talker.receive(chunks or self.encoded(name, inputs))
        return run(self.talker)

    def decode(self, chunks: Sequence[Chunk[Payload]]) -> NDArray[np.float32]:
        """Run the codec stage on one request's chunks of frames; returns [N, 2]."""
        return decode(self.codec, chunks)


class MossCheckpoints(Checkpoints[tuple[Model, int], MossStages]):
    """By model and seed."""

    def load(self, key: tuple[Model, int]) -> MossStages:
        """Start all stages."""
        model, seed = key
        folder, plugin = WRITERS[model](self.path(model, seed), seed), PLUGINS[model]
        spec = plugin.pipeline.stage
        return MossStages(
            builder=plugin.speech_builder(folder),  # type: ignore[arg-type]
            encoder=feed_forward.build_stage(
                spec(ENCODER), folder, FeedForwardDeployment(kept_mib=0)
            ),
            talker=build_stage(spec(TALKER), folder, DEPLOYMENT),
            codec=codec.build_stage(spec(CODEC), folder, CodecDeployment(slots=2)),
        )

    def path(self, model: Model, seed: int) -> Path:
        """Return a checkpoint's folder."""
        return self.folder / f"{model.value}-{seed}"

    def of(self, model: Model, seed: int) -> MossStages:
        """Return the stages of a checkpoint."""
        return self.get((model, seed))


def build_request(scenario: MossScenario) -> SpeechRequest:
    """Return the request that a caller would send for a scenario."""
    said = scenario.described or Fields()
    options: dict[str, Any] = {
        "max_new_tokens": scenario.max_frames,
        "repetition_penalty": scenario.penalty,
    }
    if scenario.model is Model.LOCAL:
        names = ("language", "tokens", "quality", "sound_event", "ambient_sound")
        options |= {name: getattr(said, name) for name in names}
    else:
        options["voice_clone_max_text_tokens"] = scenario.part_tokens
    reference = None
    if scenario.mode is not MossMode.PLAIN:
        reference = ReferenceAudio(
            stereo_recording(1.0, 1), SAMPLE_RATE, scenario.transcript or None
        )
    return SpeechRequest(
        scenario.text,
        voice="default",
        temperature=0.0,
        instructions=said.instruction,
        reference=reference,
        options=options,
    )


def make_frames(loaded: MossStages, scenario: MossScenario) -> Frames:
    """Return the frames that stand for a scenario's recording."""
    config = loaded.network._config
    return recorded(scenario, config.num_codebooks, config.codebook_size)


def heard(chunks: Sequence[Chunk[Payload]], name: str) -> CodeArray:
    """Return the [T, Q] codes of one request's chunks that are heard."""
    return join(chunks)[name]


@contextmanager
def watched(talker: Any) -> Iterator[MossObserved]:
    """Collect the scores of the only request."""
    seen = MossObserved()
    compute, choose = talker.compute_logits, FrameDraws.choose

    def watched_compute(hidden: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = compute(hidden)
        seen.codes.append([scores[0, :-1].float().numpy().copy()])
        seen.stops.append(talker.stop_scores()[0].float().numpy().copy())
        return scores

    def watched_choose(draws: FrameDraws, scores: torch.Tensor, codebook: int) -> torch.Tensor:
        seen.codes[-1].append(scores[0].float().numpy().copy())
        return choose(draws, scores, codebook)

    talker.compute_logits = watched_compute
    FrameDraws.choose = watched_choose  # type: ignore[method-assign, assignment]
    try:
        yield seen
    finally:
        del talker.compute_logits
        FrameDraws.choose = choose  # type: ignore[method-assign]
