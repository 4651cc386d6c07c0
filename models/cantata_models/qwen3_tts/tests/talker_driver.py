"""Runs scenarios through the real talker stage and compares with the reference's goldens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment, FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, StageInput
from cantata.contract.model.talker import FrameDraws
from cantata.contract.process.stage import Stage
from cantata.stages import feed_forward
from cantata.stages.ar import build_stage
from cantata_models.qwen3_tts.config import RESERVED_CODES
from cantata_models.qwen3_tts.plugin import ENCODER, PIPELINE, TALKER, unused_stages
from cantata_models.qwen3_tts.random_checkpoint import write_checkpoint
from cantata_models.qwen3_tts.request_builder import Qwen3RequestBuilder, load_builder
from cantata_models.qwen3_tts.tests.parity.recordings import SAMPLE_RATE, recording
from cantata_models.qwen3_tts.tests.parity.scenarios import (
    SCENARIOS,
    SHAPES,
    CheckpointKey,
    Qwen3TtsScenario,
)
from cantata_models.qwen3_tts.tests.rounding import SCORES
from model_engines import Checkpoints, join, run, step, watch_scores, watched

DEPLOYMENT = ArDeployment(slots=8, max_model_len=256)
GOLDENS = Path(__file__).with_name("goldens") / "talker.npz"

CodeArray = NDArray[np.int32]
Inputs = Mapping[str, StageInput]


@dataclass(frozen=True, slots=True)
class Qwen3TtsObserved:
    """One utterance and the scores from which its codes were chosen."""

    codes: CodeArray
    """[T, Q]"""
    first_scores: NDArray[np.float32]
    """[T or more, codes + 1], the end code last."""
    residual_scores: NDArray[np.float32]
    """[T or more, Q - 1, codes]"""


@dataclass(frozen=True, slots=True)
class LoadedQwen3Talker:
    """A checkpoint loaded in a stage, beside its encoders if it has any."""

    stage: Stage
    builder: Qwen3RequestBuilder
    encoder: Stage | None

    def add(self, name: str, inputs: Inputs) -> None:
        """Start a request with its recording encoded."""
        self.stage.add(name, inputs[TALKER], batch=False)
        self.stage.receive(self.encoded(name, inputs))

    def encoded(self, name: str, inputs: Inputs) -> Sequence[Chunk[Payload]]:
        """Return what the encoder makes of a request's recording, if it has one."""
        if self.encoder is None:
            return ()
        self.encoder.add(name, inputs[ENCODER], batch=False)
        return step(self.encoder)

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed."""
        return (self.stage,)

    @property
    def talker(self) -> Any:
        """The `Qwen3Talker` that vLLM runs, with the engine's mixins."""
        return self.stage._talker  # type: ignore[attr-defined]


class Qwen3TtsTalkers(Checkpoints[CheckpointKey, LoadedQwen3Talker]):
    """By checkpoint."""

    def path(self, key: CheckpointKey) -> Path:
        """Return a checkpoint's folder."""
        return self.folder / key.name

    def load(self, key: CheckpointKey) -> LoadedQwen3Talker:
        """Start the talker, and the encoder of a checkpoint that has one."""
        checkpoint = write_checkpoint(self.path(key), SHAPES[key.shape], key.kind, key.seed)
        encoder = None
        if ENCODER not in unused_stages(checkpoint):
            spec = PIPELINE.stage(ENCODER)
            encoder = feed_forward.build_stage(spec, checkpoint, FeedForwardDeployment())
        return LoadedQwen3Talker(
            build_stage(PIPELINE.stage(TALKER), checkpoint, DEPLOYMENT),
            load_builder(checkpoint),
            encoder,
        )


def scenario_named(name: str) -> Qwen3TtsScenario:
    """Return the scenario of this name from `SCENARIOS`."""
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def build_request(scenario: Qwen3TtsScenario) -> SpeechRequest:
    """Return the request that a caller would send for a scenario."""
    options: dict[str, Any] = {
        "language": scenario.language,
        "max_new_tokens": scenario.max_new_tokens,
        "non_streaming_mode": not scenario.streaming_text,
        "repetition_penalty": scenario.repetition_penalty,
    }
    reference = None
    if scenario.recording_seconds is not None:
        sound = recording(scenario.recording_seconds)
        reference = ReferenceAudio(sound[:, None], SAMPLE_RATE, scenario.reference_text)
        options["x_vector_only_mode"] = scenario.reference_text is None
    return SpeechRequest(
        scenario.text,
        voice=(scenario.speaker or "").lower(),
        temperature=0.0,
        instructions=scenario.instruct,
        reference=reference,
        options=options,
    )


def get_inputs(builder: Qwen3RequestBuilder, scenario: Qwen3TtsScenario) -> Inputs:
    """Return the stages' inputs for a scenario."""
    (request,) = builder.build("request", build_request(scenario))
    return request.inputs


def speak(loaded: LoadedQwen3Talker, requests: Mapping[str, Inputs]) -> dict[str, CodeArray]:
    """Run requests together until all end; returns [T, Q] codes by request id."""
    for name, inputs in requests.items():
        loaded.add(name, inputs)
    return join(run(loaded.stage))


def observe(loaded: LoadedQwen3Talker, inputs: Inputs) -> Qwen3TtsObserved:
    """Run one request alone and keep its scores."""
    chosen = watched(FrameDraws, "choose", lambda code, draws, scores, book: scores[0].clone())
    with watch_scores(loaded.talker) as first, chosen as residual:
        codes = speak(loaded, {"request": inputs})["request"]
    spoken = loaded.talker.codec_head.out_features - RESERVED_CODES
    scores = torch.stack(first)
    allowed = torch.cat((scores[:, :spoken], scores[:, [loaded.talker.end_code]]), dim=1)
    others = torch.stack(residual).view(-1, loaded.talker.num_codebooks - 1, spoken)
    return Qwen3TtsObserved(codes, allowed.numpy(), others.numpy())


def differences(observed: Qwen3TtsObserved, scenario: Qwen3TtsScenario) -> list[str]:
    """Describe how an utterance differs from the scenario's golden; empty if it does not."""
    goldens = np.load(GOLDENS)
    codes = goldens[f"{scenario.name}/codes"]
    if observed.codes.shape != codes.shape or (observed.codes != codes).any():
        return [f"codes: {len(observed.codes)} frames, {len(codes)} expected"]
    chosen = np.take_along_axis(
        observed.residual_scores[: len(codes)], codes[:, 1:, None].astype(np.int64), axis=2
    )
    found = []
    for name, ours in (
        ("first_scores", observed.first_scores),
        ("residual_scores", chosen[..., 0]),
    ):
        theirs = goldens[f"{scenario.name}/{name}"]
        steps = min(len(ours), len(theirs))
        if steps < len(codes):
            found.append(f"{name}: {steps} steps, {len(codes)} expected")
        elif excess := SCORES.excess(ours[:steps], theirs[:steps]):
            found.append(f"{name}: {excess} in {steps} steps")
    return found
