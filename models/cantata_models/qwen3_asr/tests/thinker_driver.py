"""Runs scenarios through the real encoder and thinker stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from cantata.config import ArDeployment
from cantata.contract.data.request import StageInput
from cantata.contract.data.transcripts import TranscriptionRequest
from cantata.stages.ar import build_stage
from cantata_layers.omni.inputs import ThinkerInput
from cantata_layers.omni.tests.thinker_driver import ThinkerDriver, Thought
from cantata_models.qwen3_asr.encoder import Qwen3AsrEncoder
from cantata_models.qwen3_asr.plugin import PIPELINE, THINKER
from cantata_models.qwen3_asr.random_checkpoint import write_checkpoint
from cantata_models.qwen3_asr.tests.parity.scenarios import GOLDENS, MAX_TOKENS, Qwen3AsrScenario
from cantata_models.qwen3_asr.transcription_builder import Qwen3AsrBuilder
from model_engines import Goldens

golden = Goldens(GOLDENS / "transcripts.npz")
WHOLE = ArDeployment(slots=8, max_model_len=512)


class LoadedRecognizer(ThinkerDriver):
    """A tiny checkpoint's encoder and thinker.

    Args:
        folder: for the checkpoint.
        seed: of it.
        is_tied: its head is its table of embeddings.
        is_published: in the publisher's form.
        deployment: of the thinker, in float32.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        *,
        is_tied: bool = False,
        is_published: bool = True,
        deployment: ArDeployment = WHOLE,
    ) -> None:
        self.folder = write_checkpoint(folder, seed, is_tied=is_tied, is_published=is_published)
        self.builder = Qwen3AsrBuilder(self.folder)
        super().__init__(
            Qwen3AsrEncoder(self.folder, torch.device("cpu")),
            build_stage(PIPELINE.stage(THINKER), self.folder, deployment),
        )

    def recognize(
        self, scenarios: Mapping[str, Qwen3AsrScenario], *, every: int = 0
    ) -> dict[str, Thought]:
        """As `answer`, of scenarios by request id."""
        inputs = {name: self.inputs(scenario) for name, scenario in scenarios.items()}
        return self.answer(inputs, every=every)

    def inputs(self, scenario: Qwen3AsrScenario) -> Mapping[str, StageInput]:
        """As the server's builder makes them, but for the length of the answer."""
        request = TranscriptionRequest(scenario.language, scenario.prompt, logprobs=True)
        made = dict(self.builder.build("r", request, scenario.samples).inputs)
        thinker = made[THINKER]
        assert isinstance(thinker, ThinkerInput)
        made[THINKER] = replace(thinker, max_tokens=MAX_TOKENS)
        return made
