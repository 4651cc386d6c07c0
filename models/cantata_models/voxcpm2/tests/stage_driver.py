"""Runs requests through the real stages of tiny checkpoints, and compares them with the goldens."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from cantata.config import ArDeployment, CodecDeployment, FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm, Rows
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, StageInput
from cantata.contract.process.stage import Stage, StepResult
from cantata.stages import codec, feed_forward
from cantata.stages.ar import build_stage
from cantata_models.voxcpm2.plugin import CODEC, ENCODER, PIPELINE, TALKER
from cantata_models.voxcpm2.request_builder import VoxCpm2RequestBuilder, load_builder
from cantata_models.voxcpm2.tests.parity.recordings import recording
from cantata_models.voxcpm2.tests.parity.scenarios import VoxCpm2CheckpointKey, VoxCpm2Scenario
from cantata_models.voxcpm2.tests.parity.write_goldens import GOLDENS

DEPLOYMENT = ArDeployment(slots=8, max_model_len=256, max_num_batched_tokens=24)
"""Prompts are longer than a step, so they are computed in parts."""
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

    def encoded(self, name: str, inputs: Inputs) -> Sequence[Chunk[Payload]]:
        """Return what the encoder stage makes of a request's recording, if it has one."""
        if ENCODER not in inputs:
            return ()
        self.encoder.add(name, inputs[ENCODER], batch=False)
        return _good(self.encoder.step())

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
                made += _good(self.talker.step())
        while self.talker.has_work():
            made += _good(self.talker.step())
        return made

    def decode(self, chunks: Sequence[Chunk[Payload]]) -> Array:
        """Run the codec stage on one request's chunks of latents; returns [N]."""
        name = chunks[0].request_id
        self.codec.add(name, None, batch=False)
        sound: list[Array] = []
        for chunk in chunks:
            self.codec.receive([chunk])
            while self.codec.has_work():
                for made in _good(self.codec.step()):
                    assert isinstance(made.payload, Pcm)
                    sound.append(made.payload.samples[:, 0])
        return np.concatenate(sound)


class VoxCpm2Checkpoints:
    """Stages by checkpoint, built on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[VoxCpm2CheckpointKey, VoxCpm2Stages] = {}

    def get(self, key: VoxCpm2CheckpointKey) -> VoxCpm2Stages:
        if key not in self._loaded:
            folder, spec = key.write(self._folder), PIPELINE.stage
            self._loaded[key] = VoxCpm2Stages(
                builder=load_builder(folder),
                encoder=feed_forward.build_stage(
                    spec(ENCODER), folder, FeedForwardDeployment(kept_mib=0)
                ),
                talker=build_stage(spec(TALKER), folder, DEPLOYMENT),
                codec=codec.build_stage(spec(CODEC), folder, CodecDeployment(slots=2)),
            )
        return self._loaded[key]

    def close(self) -> None:
        """Shut down every engine; callers must hold no references to them."""
        # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
        with patch.object(gc, "collect"):
            for loaded in self._loaded.values():
                for stage in (loaded.encoder, loaded.talker, loaded.codec):
                    assert set(stage.counts().values()) <= {0}
                    stage.close()


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
    parts = [chunk.payload for chunk in chunks if chunk.request_id == name]
    return np.concatenate(
        [part.values[part.context_frames :] for part in parts if isinstance(part, Rows)]
    )


def to_latents(loaded: VoxCpm2Stages, scenario: VoxCpm2Scenario) -> Array:
    """Return the [F, E] patches of a scenario, spoken alone."""
    return heard(loaded.talk({"request": loaded.inputs(build_request(scenario))}), "request")


@cache
def goldens() -> Mapping[str, NDArray[Any]]:
    """Return what the reference computed."""
    with np.load(GOLDENS / "speech.npz") as file:
        return dict(file)


def golden(scenario: VoxCpm2Scenario, what: str) -> NDArray[Any]:
    """Return one array of a scenario."""
    return goldens()[f"{scenario.name}/{what}"]


def differs(ours: Array, scenario: VoxCpm2Scenario, tolerance: float) -> bool:
    """Return whether these patches are not the reference's."""
    theirs = golden(scenario, "latents")
    return ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=0, atol=tolerance)


def _good(result: StepResult) -> Sequence[Chunk[Payload]]:
    assert not result.failures, result.failures
    return result.chunks
