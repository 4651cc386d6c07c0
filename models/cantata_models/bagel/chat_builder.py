"""Conversations to stage inputs, in the api's process.

The model knows no roles: a conversation is texts and pictures in their order, as the publisher's
inferencer takes them, and the answer is the text that follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import ChatRequest, ImagePart, Message, Modality, Role, TextPart
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import PipelineRequest, StageInput, Voice
from cantata.contract.model.conversation import AnswerSteps, PlannedAnswer, TextReader
from cantata.contract.model.pipeline import CODES, LATENTS, PROGRESS
from cantata_layers.token_text import TokenReader
from cantata_models.bagel.config import MARKS, load_config
from cantata_models.bagel.inputs import AnswerInput, Seen, Tokens, VisionInput
from cantata_models.bagel.pictures import PUBLISHED, PictureSizes, fitted
from cantata_models.bagel.plugin import DENOISE, SEE
from cantata_models.bagel.prompt import THINK_BEFORE_ANSWERING, BagelTokenizer, pieces
from cantata_models.bagel.thought_text import ThoughtSplitter

OF_PICTURES = frozenset({f"{DENOISE}.{LATENTS}", f"{DENOISE}.{PROGRESS}"})
"""Ports at which an answer leaves nothing."""
NEUTRAL: Mapping[str, object] = {
    "top_k": 0,
    "top_p": 1,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}
"""What the model has no more of than this."""


class BagelChatBuilder:
    """Implements `contract.model.conversation.ThinkingChatBuilder`.

    Raises:
        ConfigError: the checkpoint's configuration is not served.
    """

    takes = frozenset({Modality.TEXT, Modality.IMAGE})
    voices: tuple[Voice, ...] = ()
    text = f"{DENOISE}.{CODES}"
    warm_up = ChatRequest((Message(Role.USER, (TextPart("a"),)),), max_tokens=3, temperature=0.0)

    def __init__(self, checkpoint: Path, sizes: PictureSizes = PUBLISHED) -> None:
        self._positions = load_config(checkpoint).language.positions
        self._texts, self._sizes = BagelTokenizer(checkpoint), sizes

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Stage inputs for a conversation. Raises InvalidRequest: a part or an option cannot be
        served."""
        _check(request)
        pictures: list[NDArray[np.uint8]] = []
        parts: list[Tokens | Seen] = []
        if request.thinks:
            parts.append(self._texts.tokens(THINK_BEFORE_ANSWERING))
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, TextPart):
                    parts.append(self._texts.tokens(part.text))
                elif isinstance(part, ImagePart):
                    # As the publisher's inferencer, which resizes for the autoencoder first.
                    kept = fitted(part.pixels, self._sizes.kept)
                    pictures.append(fitted(kept, self._sizes.seen))
                    parts.append(Seen(self._sizes.seen.grid(pictures[-1]).tokens))
        used = sum(1 if isinstance(part, Seen) else len(part) for part in parts)
        room = self._positions - used
        if room < 1:
            raise InvalidRequest(
                f"messages: {used} positions; valid: less than {self._positions}", "messages"
            )
        answer = AnswerInput(
            parts=tuple(parts),
            max_tokens=room if request.max_tokens is None else min(room, request.max_tokens),
            temperature=0.0 if request.temperature is None else request.temperature,
            seed=0 if request.seed is None else request.seed,
        )
        inputs: dict[str, StageInput] = {DENOISE: answer}
        if pictures:
            inputs[SEE] = VisionInput(tuple(pictures))
        planned = PipelineRequest(request_id, inputs, without=OF_PICTURES)
        return PlannedAnswer(planned, sum(map(_count_tokens, parts)), _plan_steps(answer))

    def reader(self) -> TextReader:
        return TokenReader(self._texts.tokenizer)

    def thought_reader(self) -> ThoughtSplitter:
        return ThoughtSplitter()

    def call_reader(self) -> None:
        """The published program has no tools."""


def _count_tokens(part: Tokens | Seen) -> int:
    return part.tokens + MARKS if isinstance(part, Seen) else len(part)


def _plan_steps(answer: AnswerInput) -> AnswerSteps:
    """Each token attends to all that stand before it."""
    read = sum(map(_count_tokens, answer.parts))
    return AnswerSteps(
        reading=pieces(answer.parts),
        read=ForwardSize(read, read**2),
        writing=answer.max_tokens,
        write=ForwardSize(1, read + 1),
    )


def _check(request: ChatRequest) -> None:
    for name, neutral in NEUTRAL.items():
        if (value := getattr(request, name)) not in (None, neutral):
            raise InvalidRequest(f"{name} is {value}; this model has none; valid: {neutral}", name)
