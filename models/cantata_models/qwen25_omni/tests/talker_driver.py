"""Runs scenarios through the real talker stage, with the rows that the reference's thinker made."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.pipeline import ROWS, StageKind, StageSpec
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from cantata_models.qwen25_omni.random_checkpoint import TINY, write_checkpoint
from cantata_models.qwen25_omni.rows import Qwen25OmniTalkerInput
from cantata_models.qwen25_omni.tests.parity.scenarios import SCENARIOS, Qwen25OmniScenario
from cantata_models.qwen25_omni.tests.parity.write_goldens import GOLDENS, MIN_GAP

TALKER = StageSpec("talker", StageKind.AR, "cantata_models.qwen25_omni.talker:Qwen25OmniTalker")
DEPLOYMENT = ArDeployment(slots=12, max_model_len=256)
SCORES_RMS, SCORES_WORST = 5e-5, MIN_GAP / 2
"""Rounding alone moves scores less; below half of the smallest gap no choice can change."""
PREFILL = 16
"""Rows of a prompt that a thinker sends at a time."""

CodeArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Answer:
    """How to speak, and the thinker's rows."""

    inputs: Qwen25OmniTalkerInput
    rows: NDArray[np.float32]


class Qwen25OmniTalkers:
    """Stages by the checkpoint's seed, built on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stages: dict[int, Stage] = {}

    def get(self, seed: int) -> Stage:
        """Return the stage of this checkpoint."""
        if seed not in self._stages:
            checkpoint = write_checkpoint(self._folder / str(seed), TINY, seed)
            self._stages[seed] = build_stage(TALKER, checkpoint, DEPLOYMENT)
        return self._stages[seed]

    def close(self) -> None:
        """Shut down every engine."""
        for stage in self._stages.values():
            assert set(stage.counts().values()) == {0}
        # vLLM searches the whole heap twice per engine, which takes 2 s each in a test run.
        with patch.object(gc, "collect"):
            for stage in self._stages.values():
                stage.close()


def goldens() -> Mapping[str, NDArray[Any]]:
    """The arrays of the golden file."""
    loaded: Mapping[str, NDArray[Any]] = np.load(GOLDENS / "talker.npz")
    return loaded


def scenario_named(name: str) -> Qwen25OmniScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)


def collect_answer(scenario: Qwen25OmniScenario, **sampling: float) -> Answer:
    """What the talker is given for a scenario."""
    golden = goldens()
    options = SamplingOptions(
        **{"temperature": 0.0, "repetition_penalty": scenario.penalty, **sampling}  # type: ignore[arg-type]
    )
    prompt_rows = int(golden[f"{scenario.name}/prompt_rows"])
    positions = golden[f"{scenario.name}/positions"] if scenario.has_picture else None
    inputs = Qwen25OmniTalkerInput(
        prompt_rows, scenario.speaker, scenario.max_frames, positions, sampling=options
    )
    return Answer(inputs, golden[f"{scenario.name}/rows"])


def arriving(name: str, answer: Answer, late: bool) -> Iterator[Chunk[Rows]]:
    """An answer's rows in one chunk, or as a thinker makes them: its prompt's in parts, then one by
    one, and an empty last chunk for the token that is not fed back."""
    rows, prompt = answer.rows, answer.inputs.prompt_rows
    if not late:
        yield Chunk(name, ROWS, 0, Rows(rows), True)
        return
    starts = [*range(0, prompt, PREFILL), *range(prompt, len(rows)), len(rows)]
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(rows)], strict=True)):
        yield Chunk(name, ROWS, index, Rows(rows[start:end]), index == len(starts) - 1)


def speak(
    stage: Stage, answers: Mapping[str, Answer], *, late: bool = False
) -> dict[str, CodeArray]:
    """Speak answers together; returns their [T] codes. `late`: rows arrive between steps."""
    codes: dict[str, list[CodeArray]] = {name: [] for name in answers}
    arrivals = {name: arriving(name, answer, late) for name, answer in answers.items()}
    for name, answer in answers.items():
        stage.add(name, answer.inputs, batch=False)
    while arrivals or stage.has_work():
        for name, rows in list(arrivals.items()):
            chunk = next(rows, None)
            if chunk is None:
                del arrivals[name]
            else:
                stage.receive([chunk])
        if not stage.has_work():
            continue
        result = stage.step()
        assert not result.failures, result.failures
        for made in result.chunks:
            assert isinstance(made.payload, Codes)
            codes[made.request_id].append(made.payload.values[:, 0])
    return {name: np.concatenate(parts) for name, parts in codes.items()}


def differences(stage: Stage, scenario: Qwen25OmniScenario, *, late: bool = False) -> list[str]:
    """Describe how a spoken scenario differs from its golden; empty if it does not."""
    golden = goldens()
    with _watched(stage) as scores:
        codes = speak(stage, {"request": collect_answer(scenario)}, late=late)["request"]
    expected = golden[f"{scenario.name}/codes"]
    if codes.shape != expected.shape or (codes != expected).any():
        return [f"codes: {codes.tolist()}, {expected.tolist()} expected"]
    ours, theirs = torch.stack(scores).numpy(), golden[f"{scenario.name}/scores"]
    ended = golden[f"{scenario.name}/ending"] != "length"
    if len(ours) < len(codes) + ended:
        return [f"scores: {len(ours)} steps, {len(codes) + ended} expected"]
    known = np.isfinite(ours[0])
    apart = np.abs(ours[: len(theirs), known] - theirs[:, known]).astype(np.float64)
    rms, worst = float(np.sqrt(np.square(apart).mean())), float(apart.max())
    within = rms <= SCORES_RMS and worst <= SCORES_WORST
    return [] if within else [f"scores: off by {rms:.1e} rms, {worst:.1e} at most"]


@contextmanager
def _watched(stage: Any) -> Iterator[list[torch.Tensor]]:
    """Collect the scores [V] of the only request."""
    talker, scores = stage._talker, list[torch.Tensor]()
    compute = talker.compute_logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = compute(hidden)
        scores.append(made[0].clone())
        return made

    talker.compute_logits = watched
    try:
        yield scores
    finally:
        del talker.compute_logits
