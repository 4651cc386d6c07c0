"""Runs scenarios through the real talker stage and compares with the reference's goldens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment
from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.contract.process.stage import Stage
from cantata.stages.ar import build_stage
from cantata_layers.omni.inputs import sound_rows
from cantata_layers.omni.preprocess import Preprocessor, SoundRules
from cantata_layers.omni.preprocessor_config import load_preprocessor_config
from cantata_models.qwen3_omni.chat_builder import speech_sampling
from cantata_models.qwen3_omni.config import RESERVED_CODES, OmniConfig, SpeechConfig, load_config
from cantata_models.qwen3_omni.prompt import Qwen3OmniPromptBuilder
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.talker_rows import Qwen3OmniTalkerInput
from cantata_models.qwen3_omni.tests.parity.scenarios import GOLDENS, MIN_GAP, Qwen3OmniScenario
from model_engines import Checkpoints, Goldens, join, run, watch_scores

SPEC = StageSpec("talker", StageKind.AR, "cantata_models.qwen3_omni.talker:OmniTalker")
DEPLOYMENT = ArDeployment(slots=8, max_model_len=384)
golden = Goldens(GOLDENS / "omni.npz")
ROWS_PER_CHUNK = 100
SCORES_RMS, SCORES_WORST = 5e-5, MIN_GAP / 2
"""Below half of the goldens' smallest gap between two scores, no choice can change."""

CodeArray = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Qwen3OmniSpoken:
    """What the talker stage is given for a scenario."""

    inputs: Qwen3OmniTalkerInput
    rows: NDArray[np.float32]
    """[P, E]: the thinker's, as far as the reference's are known: of media. Empty without any."""
    answer: NDArray[np.int32]
    """[T]"""


class Checkpoint:
    """A tiny checkpoint with its prompt builder, and its talker stage once it is needed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = write_checkpoint(folder / f"tiny-{seed}", TINY, seed)
        self.config: OmniConfig = load_config(self.folder)
        preprocessor = Preprocessor(
            load_preprocessor_config(self.folder),
            self.config.thinker.vision,
            SoundRules(sound_rows),
        )
        self.prompts = Qwen3OmniPromptBuilder(self.folder, self.config, preprocessor)

    @cached_property
    def stage(self) -> Stage:
        """The talker's, on vLLM."""
        return build_stage(SPEC, self.folder, DEPLOYMENT)

    @property
    def stages(self) -> Sequence[Stage]:
        """That are closed: none before the talker is needed."""
        return (self.stage,) if "stage" in vars(self) else ()

    @property
    def talker(self) -> Any:
        """The `OmniTalker` that vLLM runs, with the engine's mixins."""
        return self.stage._talker  # type: ignore[attr-defined]

    @property
    def speech(self) -> SpeechConfig:
        """Of the talker and code2wav."""
        assert self.config.speech is not None
        return self.config.speech

    def spoken(self, scenario: Qwen3OmniScenario) -> Qwen3OmniSpoken:
        """The stage's input, with what the reference's thinker said and saw."""
        assert scenario.speaker is not None
        prompt = self.prompts.build(scenario.messages)
        heard = self.prompts.select_user_turns(prompt)
        answer = golden(scenario, "answer").astype(np.int32)
        if answer[-1] != self.config.text.im_end:
            # The reference loses the last token of an answer that was cut.
            answer = answer[:-1]
        inputs = Qwen3OmniTalkerInput(
            user=heard.tokens,
            media=heard.media,
            sources=heard.sources,
            positions=heard.positions,
            role=self.prompts.role,
            speaker=self.speech.talker.speakers[scenario.speaker],
            max_frames=scenario.max_frames,
            sampling=speech_sampling(self.speech.sampling, seed=0, greedy=True),
        )
        media = golden(scenario, "media_rows")
        rows = np.zeros((len(prompt.tokens), media.shape[1]), np.float32)
        rows[heard.sources] = media
        return Qwen3OmniSpoken(inputs, rows if len(media) else media, answer)

    def speak(
        self, requests: Mapping[str, Qwen3OmniSpoken], *, at_once: int = 1000
    ) -> dict[str, CodeArray]:
        """Run requests together until all end; returns [T, Q] codes by request id.

        Args:
            at_once: tokens of an answer that arrive together.
        """
        made: list[Chunk[Codes]] = []
        try:
            for name, spoken in requests.items():
                self.stage.add(name, spoken.inputs, batch=False)
                self._feed_rows(name, spoken.rows)
            longest = max(len(spoken.answer) for spoken in requests.values())
            for start in range(0, longest, at_once):
                for name, spoken in requests.items():
                    self._feed_answer(name, spoken.answer, start, start + at_once)
                made += run(self.stage)
        finally:
            for name in requests:
                self.stage.abort(name)
        return join(made)

    def _feed_rows(self, name: str, rows: NDArray[np.float32]) -> None:
        for index, start in enumerate(range(0, len(rows), ROWS_PER_CHUNK)):
            part = Rows(rows[start : start + ROWS_PER_CHUNK])
            final = start + ROWS_PER_CHUNK >= len(rows)
            self.stage.receive([Chunk(name, "rows", index, part, final)])

    def _feed_answer(self, name: str, answer: NDArray[np.int32], start: int, end: int) -> None:
        if start < len(answer):
            tokens = Codes(answer[start:end, None])
            self.stage.receive([Chunk(name, "codes", start, tokens, end >= len(answer))])


class Qwen3OmniCheckpoints(Checkpoints[int, Checkpoint]):
    """By seed."""

    def load(self, key: int) -> Checkpoint:
        """Write the checkpoint of this seed."""
        return Checkpoint(self.folder, key)


def check(checkpoint: Checkpoint, scenario: Qwen3OmniScenario) -> None:
    """Fail if the speech of a scenario, or a score on the way, is not the reference's."""
    with watch_scores(checkpoint.talker) as scores:
        codes = checkpoint.speak({"request": checkpoint.spoken(scenario)})["request"]
    np.testing.assert_array_equal(codes, golden(scenario, "codes"))
    talker = checkpoint.speech.talker
    end, spoken = talker.codec.eos, talker.backbone.layers.vocab_size - RESERVED_CODES
    theirs = golden(scenario, "first_scores")
    ours = torch.stack(scores)[: len(theirs)]
    ours = torch.cat((ours[:, :spoken], ours[:, [end]]), dim=1)
    apart = ours.numpy().astype(np.float64) - theirs[: len(ours)]
    assert len(ours) >= len(codes)
    assert np.sqrt(np.square(apart).mean()) <= SCORES_RMS
    assert np.abs(apart).max() <= SCORES_WORST


def shortened(spoken: Qwen3OmniSpoken, frames: int) -> Qwen3OmniSpoken:
    """The same with at most so many frames."""
    return replace(spoken, inputs=replace(spoken.inputs, max_frames=frames))
