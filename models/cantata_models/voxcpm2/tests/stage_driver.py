"""Runs requests through the real stages of tiny checkpoints, and compares them with the goldens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.config import ArDeployment, CodecDeployment, FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, StageInput
from cantata.contract.process.stage import Stage
from cantata.stages import codec, feed_forward
from cantata.stages.ar import build_stage
from cantata_models.voxcpm2.plugin import CODEC, ENCODER, PIPELINE, TALKER
from cantata_models.voxcpm2.request_builder import VoxCpm2RequestBuilder, load_builder
from cantata_models.voxcpm2.tests.parity.recordings import recording
from cantata_models.voxcpm2.tests.parity.scenarios import VoxCpm2CheckpointKey, VoxCpm2Scenario
from cantata_models.voxcpm2.tests.parity.write_goldens import GOLDENS
from model_engines import Checkpoints, Goldens, decode, join, run, step

DEPLOYMENT = ArDeployment(slots=8, max_model_len=256, max_num_batched_tokens=24)
"""Prompts are longer than a step, so they are computed in parts."""
golden = Goldens(GOLDENS / "speech.npz")
MODES = ("voice_clone", "continuation", "combined")

Array = NDArray[np.float32]
Inputs = Mapping[str, StageInput]


@dataclass(frozen=True, slots=True)
class VoxCpm2Stages:
    """A checkpoint's stages."""

    builder: VoxCpm2RequestBuilder
    encoder: Stage
    talker: Stage
    codec: Stage

    @property
    def network(self) -> Any:
        """The `VoxCpm2Talker` that vLLM runs, with the engine's mixins."""
        return self.talker._talker  # type: ignore[attr-defined]

    def inputs(self, request: SpeechRequest) -> Inputs:
        """Return the stages' inputs for a request."""
        (built,) = self.builder.build("request", request)
        return built.inputs

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed."""
        return (self.encoder, self.talker, self.codec)

    def encoded(self, name: str, inputs: Inputs) -> Sequence[Chunk[Payload]]:
        """Return what the encoder stage makes of a request's recording, if it has one."""
        if ENCODER not in inputs:
            return ()
        self.encoder.add(name, inputs[ENCODER], batch=False)
        return step(self.encoder)

    def talk(self, requests: Mapping[str, Inputs], every: int = 0) -> list[Chunk[Payload]]:
        """Run requests in the talker stage until all end.

        Args:
            requests: inputs by request id.
            every: steps between one request's start and the next one's.
        """
        made: list[Chunk[Payload]] = []
        for name, inputs in requests.items():
            self.talker.add(name, inputs[TALKER], batch=False)
            self.talker.receive(self.encoded(name, inputs))
            for _ in range(every):
                made += step(self.talker)
        return made + run(self.talker)

    def decode(self, chunks: Sequence[Chunk[Payload]]) -> Array:
        """Run the codec stage on one request's chunks of latents; returns [N]."""
        return decode(self.codec, chunks)[:, 0]


class VoxCpm2Checkpoints(Checkpoints[VoxCpm2CheckpointKey, VoxCpm2Stages]):
    """By checkpoint."""

    def load(self, key: VoxCpm2CheckpointKey) -> VoxCpm2Stages:
        """Start all stages."""
        folder, spec = key.write(self.folder), PIPELINE.stage
        return VoxCpm2Stages(
            builder=load_builder(folder),
            encoder=feed_forward.build_stage(
                spec(ENCODER), folder, FeedForwardDeployment(kept_mib=0)
            ),
            talker=build_stage(spec(TALKER), folder, DEPLOYMENT),
            codec=codec.build_stage(spec(CODEC), folder, CodecDeployment(slots=2)),
        )


def build_request(scenario: VoxCpm2Scenario) -> SpeechRequest:
    """Return the request that a caller would send for a scenario."""
    reference = None
    if scenario.mode in MODES:
        sound = recording(scenario.seconds, scenario.sample_rate, seed=1)
        transcript = scenario.transcript or None
        reference = ReferenceAudio(sound[:, None], scenario.sample_rate, transcript)
    return SpeechRequest(
        scenario.text,
        voice="default",
        seed=scenario.seed,
        instructions=scenario.description,
        reference=reference,
        options={
            "mode": scenario.mode if scenario.mode in MODES else None,
            "inference_timesteps": scenario.steps,
            "cfg_value": scenario.guidance,
            "max_new_tokens": scenario.max_frames,
        },
    )


def heard(chunks: Sequence[Chunk[Payload]], name: str) -> Array:
    """Return the [F, E] patches of one request that are heard."""
    return join(chunks)[name]


def to_latents(loaded: VoxCpm2Stages, scenario: VoxCpm2Scenario) -> Array:
    """Return the [F, E] patches of a scenario, spoken alone."""
    return heard(loaded.talk({"request": loaded.inputs(build_request(scenario))}), "request")


def differs(ours: Array, scenario: VoxCpm2Scenario, tolerance: float) -> bool:
    """Return whether these patches are not the reference's."""
    theirs = golden(scenario, "latents")
    return ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=0, atol=tolerance)
