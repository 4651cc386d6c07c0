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
from cantata.contract.data.request import PipelineRequest, ReferenceAudio, SpeechRequest
from cantata.contract.process.stage import Stage, StepResult
from cantata.stages import codec, feed_forward
from cantata.stages.ar import build_stage
from cantata_models.pocket_tts.plugin import CODEC, ENCODER, PIPELINE, TALKER
from cantata_models.pocket_tts.request_builder import PocketRequestBuilder, load_builder
from cantata_models.pocket_tts.tests.parity.scenarios import PocketScenario, record, write
from cantata_models.pocket_tts.tests.parity.write_goldens import GOLDENS

DEPLOYMENT = ArDeployment(
    slots=8, max_model_len=256, max_num_batched_tokens=24, prefix_caching=True
)
"""Prompts are longer than a step, so they are computed in parts; a voice's, once."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class PocketStages:
    """A checkpoint's stages."""

    folder: Path
    builder: PocketRequestBuilder
    encoder: Stage
    talker: Stage
    codec: Stage

    @property
    def network(self) -> Any:
        """The `PocketTalker` that vLLM runs, with the engine's mixins."""
        return self.talker._talker  # type: ignore[attr-defined]

    @property
    def decoder(self) -> Any:
        """The `MimiDecoder`."""
        return self.codec._decoder  # type: ignore[attr-defined]

    def encoded(self, request: PipelineRequest) -> Sequence[Chunk[Payload]]:
        """Return what the encoder stage makes of a request's recording, if it has one."""
        if ENCODER not in request.inputs:
            return ()
        self.encoder.add(request.request_id, request.inputs[ENCODER], batch=False)
        return _good(self.encoder.step())

    def talk(self, requests: Sequence[PipelineRequest], every: int = 0) -> dict[str, Floats]:
        """Run requests in the talker stage until all end.

        Args:
            requests: of different ids.
            every: steps between one request's start and the next one's.

        Returns:
            [F, E + 1] frames by request id.
        """
        made: list[Chunk[Payload]] = []
        for request in requests:
            self.talker.add(request.request_id, request.inputs[TALKER], batch=False)
            self.talker.receive(self.encoded(request))
            for _ in range(every):
                made += _good(self.talker.step())
        while self.talker.has_work():
            made += _good(self.talker.step())
        frames: dict[str, list[Floats]] = {request.request_id: [] for request in requests}
        for chunk in made:
            assert isinstance(chunk.payload, Rows)
            frames[chunk.request_id].append(chunk.payload.values)
        return {name: np.concatenate(parts) for name, parts in frames.items()}

    def decode(self, frames: Floats) -> Floats:
        """Run the codec stage on one request's frames; returns [N]."""
        name, sound = "request", list[Floats]()
        self.codec.add(name, None, batch=False)
        for index, frame in enumerate(frames):
            chunk = Chunk(name, "latents", index, Rows(frame[None]), index == len(frames) - 1)
            self.codec.receive([chunk])
            while self.codec.has_work():
                for made in _good(self.codec.step()):
                    assert isinstance(made.payload, Pcm)
                    sound.append(made.payload.samples[:, 0])
        return np.concatenate(sound)


class PocketCheckpoints:
    """Stages by checkpoint, built on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[str, PocketStages] = {}

    def get(self, name: str) -> PocketStages:
        if name not in self._loaded:
            folder, spec = write(name, self._folder), PIPELINE.stage
            self._loaded[name] = PocketStages(
                folder=folder,
                builder=load_builder(folder),
                encoder=feed_forward.build_stage(
                    spec(ENCODER), folder, FeedForwardDeployment(kept_mib=0)
                ),
                talker=build_stage(spec(TALKER), folder, DEPLOYMENT),
                codec=codec.build_stage(spec(CODEC), folder, CodecDeployment(slots=2)),
            )
        return self._loaded[name]

    def close(self) -> None:
        """Shut down every engine; callers must hold no references to them."""
        # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
        with patch.object(gc, "collect"):
            for loaded in self._loaded.values():
                for stage in (loaded.encoder, loaded.talker, loaded.codec):
                    assert set(stage.get_counts().values()) <= {0}
                    stage.close()


def ask(scenario: PocketScenario) -> SpeechRequest:
    """Return the request that a caller would send for a scenario."""
    reference = None
    if scenario.seconds:
        reference = ReferenceAudio(record(scenario)[:, None], scenario.sample_rate)
    options = {
        "sampler_decode_steps": scenario.steps,
        "noise_clamp": scenario.noise_clamp,
        "eos_threshold": scenario.eos_threshold,
        "frames_after_eos": scenario.frames_after_eos,
        "max_new_tokens": scenario.max_frames,
    }
    return SpeechRequest(
        scenario.text,
        voice=scenario.voice,
        seed=scenario.seed,
        temperature=scenario.temperature,
        reference=reference,
        options={name: value for name, value in options.items() if value is not None},
    )


def to_frames(loaded: PocketStages, scenario: PocketScenario) -> list[Floats]:
    """Return the [F, E + 1] frames of each piece of a scenario, spoken one after the other."""
    pieces = loaded.builder.build(scenario.name, ask(scenario))
    return [loaded.talk([piece])[piece.request_id] for piece in pieces]


@cache
def goldens() -> Mapping[str, NDArray[Any]]:
    """Return what the reference computed."""
    with np.load(GOLDENS / "speech.npz") as file:
        return dict(file)


def golden(scenario: PocketScenario, what: str) -> NDArray[Any]:
    """Return one array of a scenario."""
    return goldens()[f"{scenario.name}/{what}"]


def differs(ours: Sequence[Floats], scenario: PocketScenario, tolerance: float) -> bool:
    """Return whether these frames are not the reference's."""
    theirs, counts = golden(scenario, "latents"), [len(frames) for frames in ours]
    latents = np.concatenate(ours)[:, : theirs.shape[1]]
    same = counts == golden(scenario, "frames").tolist()
    return not same or not np.allclose(latents, theirs, rtol=0, atol=tolerance)


def _good(result: StepResult) -> Sequence[Chunk[Payload]]:
    assert not result.failures, result.failures
    return result.chunks
