"""A tiny omni model: a thinker that answers, a talker that speaks from its hidden states, and an
encoder of sounds that the thinker hears.

Letters: L positions, D hidden size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import (
    AudioPart,
    CallArguments,
    CallStarted,
    ChatRequest,
    Message,
    Modality,
    Role,
    TextPart,
)
from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SamplingOptions, Voice
from cantata.contract.model.conversation import PlannedAnswer, Written
from cantata.contract.model.pipeline import EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from tiny_talker.checkpoint import CODEBOOK_SIZE, save_tiny_checkpoint
from tiny_talker.inputs import TinyConversation, TinyInput, TinySound
from tiny_talker.latent_plugin import THINKING_LATENT
from tiny_talker.plugin import HEARD_FIRST

MAX_TOKENS = 40
MAX_HEARD = 32
SPEAKERS = frozenset({"talker", "decoder"})
OMNI = PipelineSpec(
    stages=(
        StageSpec(
            "encoder",
            StageKind.FEED_FORWARD,
            "tiny_talker.encoder:load_encoder",
            outputs={"rows": Rows},
        ),
        StageSpec(
            "thinker", StageKind.AR, "tiny_talker.thinker:TinyThinker", outputs={"rows": Rows}
        ),
        *THINKING_LATENT.stages[1:],
    ),
    edges=(EdgeSpec("encoder.rows", "thinker"), *THINKING_LATENT.edges),
)


class TinyReader:
    """A letter for each token; a token divisible by five is half of one, with the next."""

    def __init__(self) -> None:
        self._held = ""

    def read(self, tokens: NDArray[np.int32]) -> str:
        text = self._held + "".join(letter(token) for token in tokens.tolist())
        cut = text.rfind("<") if text.endswith("<") else len(text)
        self._held = text[cut:]
        return text[:cut]

    def end(self) -> str:
        held, self._held = self._held, ""
        return held


class TinyCallReader:
    """A letter of two tokens calls the tool of that name with the consonants behind it; other
    letters are words."""

    def __init__(self) -> None:
        self._held = ""

    def read(self, text: str) -> list[Written]:
        self._held += text
        found: list[Written] = []
        while match := _WRITTEN.match(self._held):
            found += _told(match)
            self._held = self._held[match.end() :]
        return found

    def end(self) -> list[Written]:
        return self.read("a")


_WRITTEN = re.compile("[^<](?=.)|<(?P<name>.)(?P<arguments>[^aeiou<]*)(?=[aeiou<])")


def _told(match: re.Match[str]) -> list[Written]:
    if match["name"] is None:
        return [match[0]]
    return [CallStarted(match["name"]), CallArguments(match["arguments"])]


def letter(token: int) -> str:
    """`<` begins a letter of two tokens."""
    return "<" if token % 5 == 0 else chr(ord("a") + token)


@dataclass(frozen=True, slots=True)
class TinyChatBuilder:
    """Implements `contract.model.conversation.ChatBuilder`: a token for each character. An
    answer has at least half of the tokens that it may have."""

    takes: frozenset[Modality] = frozenset({Modality.TEXT, Modality.AUDIO})
    voices: tuple[Voice, ...] = (Voice("tiny", "Tiny"),)
    text: str = "thinker.codes"
    warm_up: ChatRequest = field(
        default_factory=lambda: ChatRequest(
            (Message(Role.USER, (TextPart("Hello"),)),), voice="tiny", max_tokens=8
        )
    )

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        tokens = [ord(c) % CODEBOOK_SIZE for text in _texts(request) for c in text]
        if not tokens:
            raise InvalidRequest("nothing to answer", "messages")
        sounds = [_heard(part) for part in _parts(request) if isinstance(part, AudioPart)]
        max_tokens = MAX_TOKENS if request.max_tokens is None else request.max_tokens
        heard = sum(map(len, sounds))
        sampling = SamplingOptions(
            request.seed or 0,
            request.temperature,
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
        )
        inputs = {
            "thinker": TinyConversation(
                tokens,
                max_frames=max_tokens,
                min_frames=max_tokens // 2,
                heard=heard,
                exports_rows=request.voice is not None,
                sampling=sampling,
            ),
        }
        if sounds:
            inputs["encoder"] = TinySound(np.concatenate(sounds))  # type: ignore[assignment]
        if request.voice is not None:
            inputs["talker"] = TinyInput(max_frames=HEARD_FIRST + 1, sampling=sampling)  # type: ignore[assignment]
        without = frozenset() if request.voice is not None else SPEAKERS
        return PlannedAnswer(
            PipelineRequest(request_id, inputs, without=without), heard + len(tokens)
        )

    def reader(self) -> TinyReader:
        return TinyReader()

    def call_reader(self) -> TinyCallReader:
        return TinyCallReader()


def _heard(sound: AudioPart) -> NDArray[np.float32]:
    """[N] of its samples, evenly: all of them, or about `MAX_HEARD`."""
    return np.ascontiguousarray(sound.samples[:: -(-len(sound.samples) // MAX_HEARD), 0])


def _parts(request: ChatRequest) -> list[object]:
    return [part for message in request.messages for part in message.parts]


def _texts(request: ChatRequest) -> list[str]:
    return [part.text for part in _parts(request) if isinstance(part, TextPart)]


PLUGIN = ModelPlugin(
    name="tiny-omni",
    model_types=("tiny_talker",),
    pipeline=OMNI,
    deployment=Path(__file__).with_name("omni.yaml"),
    load_chat_builder=lambda _: TinyChatBuilder(),
    write_random_checkpoint=save_tiny_checkpoint,
)
