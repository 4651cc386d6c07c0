"""Runs conversations through a model's real encoder and thinker stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data import chat
from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.data.request import StageInput
from cantata.contract.model.feed_forward import FeedForward
from cantata.contract.process.stage import Stage
from cantata_layers.omni.messages import Part, PromptMessage, PromptPicture, PromptSound, Text

ENCODER, THINKER = "encoder", "thinker"
"""The stages' names in every omni model's pipeline."""


@dataclass(slots=True)
class Thought:
    """What the thinker made of one conversation."""

    tokens: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32]] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """Of the tokens, if they were asked for."""
    stopped: bool = False
    """It ended the answer itself."""

    @property
    def all_rows(self) -> NDArray[np.float32]:
        """[positions, E]"""
        return np.concatenate(self.rows)


class ThinkerDriver:
    """An encoder and a thinker.

    Args:
        encoder: makes the rows of media.
        stage: the thinker's.
    """

    def __init__(self, encoder: FeedForward, stage: Stage) -> None:
        self.encoder, self.stage = encoder, stage

    @property
    def thinker(self) -> Any:
        """The network that vLLM runs, with the engine's mixins."""
        return self.stage._talker  # type: ignore[attr-defined]

    def answer(
        self, asked: Mapping[str, Mapping[str, StageInput]], *, every: int = 0
    ) -> dict[str, Thought]:
        """Answer conversations together.

        Args:
            asked: the stages' inputs by request id.
            every: steps between two of them.
        """
        waiting = dict(asked)
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

    @property
    def _has_slot(self) -> bool:
        return self.stage.get_counts()["slots"] < self.stage.capacity.slots

    def _begin(self, name: str, inputs: Mapping[str, StageInput]) -> None:
        self.stage.add(name, inputs[THINKER], batch=False)
        if ENCODER in inputs:
            with torch.inference_mode():
                [made] = self.encoder.run([inputs[ENCODER]])
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
            thought.logprobs += chunk.payload.logprobs
            thought.stopped = chunk.final and not len(chunk.payload.values)


def asked(message: PromptMessage) -> chat.Message:
    """A message as the api has it."""
    return chat.Message(chat.Role(message.role.value), tuple(_part(part) for part in message.parts))


def _part(part: Part) -> chat.MessagePart:
    match part:
        case Text(text):
            return chat.TextPart(text)
        case PromptSound(samples):
            return chat.AudioPart(samples[:, None], 16_000)
        case PromptPicture(pixels):
            return chat.ImagePart(pixels)
        case _:
            sound = None if part.sound is None else _part(part.sound)
            assert sound is None or isinstance(sound, chat.AudioPart)
            return chat.VideoPart(part.frames, part.fps, sound)
