"""Runs conversations through the real encoder and thinker stages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from cantata.config import ArDeployment
from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.request import StageInput
from cantata.stages.ar import build_stage
from cantata_layers.omni.tests.thinker_driver import ThinkerDriver, Thought, asked
from cantata_models.qwen25_omni.chat_builder import Qwen25OmniChatBuilder
from cantata_models.qwen25_omni.encoder import load_encoder
from cantata_models.qwen25_omni.plugin import PIPELINE, THINKER
from cantata_models.qwen25_omni.random_checkpoint import TINY, write_checkpoint
from cantata_models.qwen25_omni.tests.parity.conversations import END_GAIN, SEED, Conversation
from model_engines import Goldens

GOLDENS = Path(__file__).parent / "goldens"
golden = Goldens(GOLDENS / "conversations.npz")
WHOLE = ArDeployment(slots=8, max_model_len=512)


class LoadedThinker(ThinkerDriver):
    """A tiny checkpoint's encoder and thinker.

    Args:
        folder: for the checkpoint.
        deployment: of the thinker, in float32.
    """

    def __init__(self, folder: Path, deployment: ArDeployment = WHOLE) -> None:
        self.folder = write_checkpoint(folder, TINY, SEED, end_gain=END_GAIN)
        self.builder = Qwen25OmniChatBuilder(self.folder)
        super().__init__(
            load_encoder(self.folder, torch.device("cpu")),
            build_stage(PIPELINE.stage(THINKER), self.folder, deployment),
        )

    def think(
        self, conversations: Mapping[str, Conversation], *, every: int = 0
    ) -> dict[str, Thought]:
        """As `answer`, of conversations by request id."""
        inputs = {name: self.inputs(one) for name, one in conversations.items()}
        return self.answer(inputs, every=every)

    def inputs(self, conversation: Conversation) -> Mapping[str, StageInput]:
        """As the server's request builder makes them."""
        return self.builder.build("r", build_request(conversation)).request.inputs


def build_request(conversation: Conversation) -> ChatRequest:
    """A conversation as the api asks it: greedily, at every level."""
    messages = tuple(asked(message) for message in conversation.messages)
    return ChatRequest(
        messages, conversation.speaker, max_tokens=conversation.max_tokens, seed=0, temperature=0.0
    )
