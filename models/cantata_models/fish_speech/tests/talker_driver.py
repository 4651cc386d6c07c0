"""Runs scenarios through the real talker stage and compares with the statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment, FeedForwardDeployment
from cantata.contract.data.chunks import Codes
from cantata.contract.data.request import PipelineRequest, ReferenceAudio, SpeechRequest
from cantata.contract.model.talker import FrameDraws
from cantata.contract.process.stage import Stage
from cantata.stages import feed_forward
from cantata.stages.ar import build_stage
from cantata_models.fish_speech.config import SAMPLE_RATE, FishLayout
from cantata_models.fish_speech.plugin import ENCODER, S1_PIPELINE, S2_PIPELINE, TALKER
from cantata_models.fish_speech.prompt import FishEncoderInput
from cantata_models.fish_speech.random_checkpoint import write_checkpoint
from cantata_models.fish_speech.request_builder import load_s1_builder, load_s2_builder
from cantata_models.fish_speech.tests.parity.prompt_statement import s1_prompt, s2_prompt
from cantata_models.fish_speech.tests.parity.scenarios import (
    SECONDS,
    SHAPES,
    FishScenario,
    recording,
)
from cantata_models.fish_speech.tests.parity.talker_statement import SpokenBefore, TalkerStatement
from model_engines import Checkpoints, join, run, step, watch_scores

DEPLOYMENT = ArDeployment(slots=8, max_model_len=512)
TOLERANCE = 1e-3
"""Of scores up to about 30, after two stacks in float32."""
CodeArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class FishObserved:
    """What was spoken last of a text, and the scores from which its codes were chosen."""

    codes: CodeArray
    """[T, Q]"""
    earlier: Sequence[CodeArray]
    """[T, Q] each: what was spoken before it."""
    first_scores: torch.Tensor
    """[T or T + 1, V] by code 0."""
    residual_scores: torch.Tensor
    """[T or T + 1, Q - 1, codes]"""


class LoadedFishTalker:
    """A checkpoint loaded in a stage, beside its encoder and its statement."""

    def __init__(self, checkpoint: Path, layout: FishLayout) -> None:
        is_s2 = layout is FishLayout.S2
        pipeline = S2_PIPELINE if is_s2 else S1_PIPELINE
        self.checkpoint = checkpoint
        self.stage: Stage = build_stage(pipeline.stage(TALKER), checkpoint, DEPLOYMENT)
        self.encoder = feed_forward.build_stage(
            pipeline.stage(ENCODER), checkpoint, FeedForwardDeployment()
        )
        self.builder: Any = load_s2_builder(checkpoint) if is_s2 else load_s1_builder(checkpoint)
        self.statement = TalkerStatement(checkpoint)

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed."""
        return (self.stage,)

    @property
    def talker(self) -> Any:
        """What vLLM runs, with the engine's mixins."""
        return self.stage._talker  # type: ignore[attr-defined]

    def add(self, name: str, request: PipelineRequest) -> None:
        """Start a request with its recording encoded."""
        self.stage.add(name, request.inputs[TALKER], batch=False)
        if ENCODER in request.inputs:
            self.encoder.add(name, request.inputs[ENCODER], batch=False)
            self.stage.receive(step(self.encoder))

    def recorded_frames(self, seconds: float = SECONDS[0]) -> torch.Tensor:
        """[C, Q]: what the encoder makes of a recording alone."""
        self.encoder.add("frames", FishEncoderInput((recording(seconds),)), batch=False)
        (chunk,) = self.encoder.step().chunks
        assert isinstance(chunk.payload, Codes)
        return torch.from_numpy(chunk.payload.values).long()


class FishTalkers(Checkpoints[tuple[str, int], LoadedFishTalker]):
    """By shape and seed."""

    def load(self, key: tuple[str, int]) -> LoadedFishTalker:
        """Start the talker and the encoder."""
        shape, seed = SHAPES[key[0]], key[1]
        folder = write_checkpoint(self.folder / f"{key[0]}-{seed}", shape, seed)
        return LoadedFishTalker(folder, shape.layout)

    def of(self, scenario: FishScenario) -> LoadedFishTalker:
        """Return the stages of a scenario's checkpoint."""
        return self.get((scenario.shape, scenario.seed))


def build_request(scenario: FishScenario, **fields: Any) -> SpeechRequest:
    """Return the request that a caller would send for a scenario."""
    recordings = [
        ReferenceAudio(recording(seconds)[:, None], SAMPLE_RATE, transcript)
        for seconds, transcript in zip(SECONDS, scenario.transcripts, strict=False)
    ]
    options = {"max_new_tokens": scenario.max_new_tokens, "repetition_penalty": 1.0}
    if scenario.max_bytes is not None:
        options["chunk_length"] = scenario.max_bytes
    return SpeechRequest(
        scenario.text,
        voice="default",
        reference=recordings[0] if recordings else None,
        more_references=tuple(recordings[1:]),
        **{"temperature": 0.0, "seed": 0, "options": options, **fields},
    )


def speak(loaded: LoadedFishTalker, requests: Mapping[str, SpeechRequest]) -> dict[str, CodeArray]:
    """Run texts that are spoken in one go together; returns [T, Q] codes by name."""
    pieces = {}
    for name, request in requests.items():
        (pieces[name],) = loaded.builder.build(name, request)
    return _run(loaded, pieces)


def _run(loaded: LoadedFishTalker, pieces: Mapping[str, PipelineRequest]) -> dict[str, CodeArray]:
    for name, piece in pieces.items():
        loaded.add(name, piece)
    return join(run(loaded.stage))


def observe(loaded: LoadedFishTalker, request: SpeechRequest) -> FishObserved:
    """Run one text alone, as the server does, and keep the scores of what is spoken last."""
    *pieces, last = loaded.builder.build("text", request)
    said: dict[str, CodeArray] = {}
    for piece in pieces:
        said |= _run(loaded, {piece.request_id: _taken_up(piece, said)})
    with _watched(loaded.talker) as (first, residual):
        codes = _run(loaded, {"last": _taken_up(last, said)})["last"]
    books = loaded.talker.num_codebooks - 1
    others = torch.stack(residual).view(-1, books, residual[0].shape[-1])
    return FishObserved(codes, list(said.values()), torch.stack(first), others)


def _taken_up(piece: PipelineRequest, said: Mapping[str, CodeArray]) -> PipelineRequest:
    if piece.continuation is None:
        return piece
    earlier = [Codes(said[name]) for name in piece.continuation.earlier]
    return replace(piece, inputs=piece.continuation.inputs(earlier))


def differences(
    loaded: LoadedFishTalker, observed: FishObserved, scenario: FishScenario
) -> list[str]:
    """Describe how a greedy utterance differs from what the statement would say after each of its
    frames; empty if it does not."""
    statement, count = loaded.statement, len(observed.codes)
    layout = s2_prompt if statement.is_s2 else s1_prompt
    *earlier, text = scenario.groups or (scenario.text.strip(),)
    if len(observed.earlier) != len(earlier):
        return [f"{len(observed.earlier)} groups before the last, {len(earlier)} expected"]
    prompt, places = layout(loaded.checkpoint, text, scenario.transcripts, earlier)
    frames = [loaded.recorded_frames(seconds) for seconds in SECONDS[: len(scenario.transcripts)]]
    frames += [torch.from_numpy(codes).long() for codes in observed.earlier]
    said = _said(loaded, observed.codes)
    first, residual = statement.scores(prompt, list(zip(places, frames, strict=True)), said)
    found = []
    chosen = first[: count + 1].argmax(dim=1)
    ends = (chosen == statement.end).nonzero().flatten().tolist()
    limit = scenario.max_new_tokens - 1
    due = min([*ends, limit])
    if count != due:
        found.append(f"{count} frames, {due} expected")
    if not torch.equal(chosen[:count], said.tokens):
        found.append("tokens")
    if not torch.equal(residual.argmax(dim=2), said.codes[:, 1:]):
        found.append("codes")
    ours = torch.full((len(observed.first_scores), first.shape[1]), -torch.inf)
    ours[:, loaded.talker.tokens] = observed.first_scores
    found += _apart("first scores", ours, first[: len(ours)])
    return found + _apart("residual scores", observed.residual_scores[:count], residual)


def _said(loaded: LoadedFishTalker, codes: CodeArray) -> SpokenBefore:
    tensor = torch.from_numpy(codes).long()
    tokens = loaded.talker.tokens[tensor[:, 0]]
    size = loaded.statement.size
    is_semantic = (tokens >= loaded.statement.begin) & (tokens < loaded.statement.begin + size)
    tensor[:, 0] = torch.where(is_semantic, tokens - loaded.statement.begin, 0)
    return SpokenBefore(tokens, tensor)


def _apart(name: str, ours: torch.Tensor, theirs: torch.Tensor) -> list[str]:
    if ours.shape != theirs.shape:
        return [f"{name}: {list(ours.shape)}, {list(theirs.shape)} expected"]
    apart = torch.where(ours == theirs, 0.0, (ours.double() - theirs).abs())
    return (
        [f"{name}: off by {apart.max():.1e}"] if apart.numel() and apart.max() > TOLERANCE else []
    )


@contextmanager
def _watched(talker: Any) -> Iterator[tuple[list[torch.Tensor], list[torch.Tensor]]]:
    """Collect the scores of the only request: [V] for each code 0, [codes] for each later code."""
    residual: list[torch.Tensor] = []
    choice = talker._build_choice

    def watched_choice(draws: FrameDraws) -> Callable[[torch.Tensor, int], torch.Tensor]:
        choose = choice(draws)

        def watched(scores: torch.Tensor, codebook: int) -> torch.Tensor:
            residual.append(scores[0].clone())
            code: torch.Tensor = choose(scores, codebook)
            return code

        return watched

    with watch_scores(talker) as first, patch.object(talker, "_build_choice", watched_choice):
        yield first, residual
