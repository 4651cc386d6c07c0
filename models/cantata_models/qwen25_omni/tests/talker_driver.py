"""Runs scenarios through the real talker stage, with the rows that the reference's thinker made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from model_engines import Checkpoints, join, step, watch_scores

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


@dataclass(frozen=True, slots=True)
class LoadedTalker:
    """A talker's stage."""

    stage: Stage

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed."""
        return (self.stage,)


class Qwen25OmniTalkers(Checkpoints[int, LoadedTalker]):
    """By seed."""

    def load(self, key: int) -> LoadedTalker:
        """Start the talker of this checkpoint."""
        checkpoint = write_checkpoint(self.folder / str(key), TINY, key)
        return LoadedTalker(build_stage(TALKER, checkpoint, DEPLOYMENT))

    def stage(self, seed: int) -> Stage:
        """Return the talker's stage of this checkpoint."""
        return self.get(seed).stage


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
    made: list[Chunk[Codes]] = []
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
        if stage.has_work():
            made += step(stage)
    return {name: codes[:, 0] for name, codes in join(made).items()}


def differences(stage: Stage, scenario: Qwen25OmniScenario, *, late: bool = False) -> list[str]:
    """Describe how a spoken scenario differs from its golden; empty if it does not."""
    golden = goldens()
    talker: Any = stage._talker  # type: ignore[attr-defined]
    with watch_scores(talker) as scores:
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
