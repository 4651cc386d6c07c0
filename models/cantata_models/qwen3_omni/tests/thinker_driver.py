"""Runs scenarios through the real encoder and thinker stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from cantata.config import ArDeployment
from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.request import StageInput
from cantata.stages.ar import build_stage
from cantata_layers.omni.tests.thinker_driver import ThinkerDriver, Thought, asked
from cantata_models.qwen3_omni.chat_builder import Qwen3OmniChatBuilder
from cantata_models.qwen3_omni.encoder import load_encoder
from cantata_models.qwen3_omni.plugin import PIPELINE, THINKER
from cantata_models.qwen3_omni.random_checkpoint import write_checkpoint
from cantata_models.qwen3_omni.random_checkpoint_config import TINY
from cantata_models.qwen3_omni.tests.parity.scenarios import Qwen3OmniScenario

WHOLE = ArDeployment(slots=8, max_model_len=512)


class LoadedThinker(ThinkerDriver):
    """A tiny checkpoint's encoder and thinker.

    Args:
        folder: for the checkpoint.
        seed: of it.
        deployment: of the thinker, in float32.
    """

    def __init__(self, folder: Path, seed: int, deployment: ArDeployment = WHOLE) -> None:
        self.folder = write_checkpoint(folder / f"tiny-{seed}", TINY, seed)
        self.builder = Qwen3OmniChatBuilder(self.folder)
        super().__init__(
            load_encoder(self.folder, torch.device("cpu")),
            build_stage(PIPELINE.stage(THINKER), self.folder, deployment),
        )

    def think(
        self, scenarios: Mapping[str, Qwen3OmniScenario], *, every: int = 0
    ) -> dict[str, Thought]:
        """As `answer`, of scenarios by request id."""
        inputs = {name: self.inputs(scenario) for name, scenario in scenarios.items()}
        return self.answer(inputs, every=every)

    def inputs(self, scenario: Qwen3OmniScenario) -> Mapping[str, StageInput]:
        """As the server's request builder makes them."""
        return self.builder.build("r", build_request(scenario)).request.inputs


def build_request(scenario: Qwen3OmniScenario) -> ChatRequest:
    """A scenario as the api asks it: greedily, at every level."""
    messages = tuple(asked(message) for message in scenario.messages)
    return ChatRequest(
        messages, scenario.speaker, max_tokens=scenario.max_tokens, seed=0, temperature=0.0
    )
