"""Runs conversations through the real encoder and thinker stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import ArDeployment
from cantata.contract.data import chat
from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.data.request import StageInput
from cantata.contract.process.stage import Stage
from cantata.engine.ar import build_stage
from cantata_layers.omni.messages import Message, Part, Picture, Sound, Text
from cantata_models.qwen25_omni.chat_builder import OmniChatBuilder
from cantata_models.qwen25_omni.encoder_stage import MediaEncoder, load_encoder
from cantata_models.qwen25_omni.pipeline import ENCODER, PIPELINE, THINKER
from cantata_models.qwen25_omni.random_checkpoint.configs import TINY
from cantata_models.qwen25_omni.random_checkpoint.write import write_checkpoint
from cantata_models.qwen25_omni.tests.parity.conversations import END_GAIN, SEED, Conversation

GOLDENS = Path(__file__).parent / "goldens"
WHOLE = ArDeployment(slots=8, max_model_len=512)


@cache
def goldens() -> Mapping[str, NDArray[Any]]:
    """The arrays of the golden file."""
    with np.load(GOLDENS / "conversations.npz") as loaded:
        return dict(loaded)


def golden(conversation: Conversation, name: str) -> NDArray[Any]:
    """One array of a conversation's golden."""
    return goldens()[f"{conversation.name}/{name}"]


@dataclass(slots=True)
class Thought:
    """What the thinker made of one conversation."""

    tokens: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    stopped: bool = False
    """It ended the answer itself."""

    @property
    def all_rows(self) -> NDArray[np.float32]:
        """[positions, E]"""
        return np.concatenate(self.rows)


class LoadedThinker:
    """A tiny checkpoint's encoder and thinker.

    Args:
        folder: for the checkpoint.
        deployment: of the thinker, in float32.
    """

    def __init__(self, folder: Path, deployment: ArDeployment = WHOLE) -> None:
        self.folder = write_checkpoint(folder, TINY, SEED, end_gain=END_GAIN)
        self.builder = OmniChatBuilder(self.folder)
        self.encoder: MediaEncoder = load_encoder(self.folder, torch.device("cpu"))
        self.stage: Stage = build_stage(PIPELINE.stage(THINKER), self.folder, deployment)

    @property
    def thinker(self) -> Any:
        """The `Qwen25OmniThinker` that vLLM runs, with the engine's mixins."""
        return self.stage._talker  # type: ignore[attr-defined]

    def think(self, asked: Mapping[str, Conversation], *, every: int = 0) -> dict[str, Thought]:
        """Answer conversations together.

        Args:
            asked: by request id.
            every: steps between two of them.
        """
        waiting = {name: self.inputs(conversation) for name, conversation in asked.items()}
        thoughts = {name: Thought() for name in asked}
        steps = 0
        try:
            while waiting or self.stage.has_work():
                started = len(thoughts) - len(waiting)
                while waiting and steps >= every * started and self._has_slot:
                    name = next(iter(waiting))
                    self._begin(name, waiting.pop(name))
                    started += 1
                steps += 1
                if self.stage.has_work():
                    self._step(thoughts)
        finally:
            for name in asked:
                self.stage.abort(name)
        return thoughts

    def inputs(self, conversation: Conversation) -> Mapping[str, StageInput]:
        """As the server's request builder makes them."""
        return self.builder.build("r", request_of(conversation)).request.inputs

    @property
    def _has_slot(self) -> bool:
        return self.stage.counts()["slots"] < self.stage.capacity.slots

    def _begin(self, name: str, inputs: Mapping[str, StageInput]) -> None:
        self.stage.add(name, inputs[THINKER], batch=False)
        if ENCODER in inputs:
            with torch.inference_mode():
                [made] = self.encoder.run([inputs[ENCODER]])  # type: ignore[list-item]
            assert isinstance(made, dict)
            self.stage.receive([Chunk(name, "rows", 0, made["rows"], final=True)])

    def _step(self, thoughts: Mapping[str, Thought]) -> None:
        result = self.stage.step()
        assert not result.failures
        for chunk in result.chunks:
            thought = thoughts[chunk.request_id]
            if isinstance(chunk.payload, Rows):
                thought.rows.append(chunk.payload.values)
                continue
            assert isinstance(chunk.payload, Codes)
            thought.tokens += chunk.payload.values[:, 0].tolist()
            thought.stopped = chunk.final and not len(chunk.payload.values)


def request_of(conversation: Conversation) -> ChatRequest:
    """A conversation as the api asks it: greedily, at every level."""
    messages = tuple(_message(message) for message in conversation.messages)
    return ChatRequest(
        messages, conversation.speaker, max_tokens=conversation.max_tokens, seed=0, temperature=0.0
    )


def _message(message: Message) -> chat.Message:
    return chat.Message(chat.Role(message.role.value), tuple(_part(part) for part in message.parts))


def _part(part: Part) -> chat.Part:
    match part:
        case Text(text):
            return chat.TextPart(text)
        case Sound(samples):
            return chat.AudioPart(samples[:, None], 16_000)
        case Picture(pixels):
            return chat.ImagePart(pixels)
        case _:
            return chat.VideoPart(part.frames, part.fps)
