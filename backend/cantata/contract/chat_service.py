"""What the api needs of a model that answers messages: text, spoken while it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cantata.contract.data.chat import (
    AnswerOption,
    CallArguments,
    CallStarted,
    ChatRequest,
    Modality,
    Thought,
    TokenScore,
)
from cantata.contract.data.request import Voice
from cantata.contract.service import Run, ServedModel, SpeechChunk, SpeechService


class FinishReason(StrEnum):
    """Why an answer's text has ended."""

    STOP = "stop"
    """The model ended it."""
    LENGTH = "length"
    """It reached its maximum number of tokens."""


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """New text of an answer, never cut inside a character. It may be empty."""

    text: str
    tokens: int
    """Tokens that the text came from."""
    scores: tuple[TokenScore, ...] = ()
    """Of these tokens, if they were asked for."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """The end of the text. Sound may follow."""

    reason: FinishReason
    cached_tokens: int = 0
    """Tokens of the conversation that were read from memory."""


AnswerEvent = Thought | AnswerDelta | CallStarted | CallArguments | TextEnd | SpeechChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Run[AnswerEvent]):
    """An answer in progress: the thought before the text, text and sound as they are made, and
    exactly one `TextEnd`. Text never waits for sound."""

    prompt_tokens: int
    """Tokens of the conversation, including its sounds and pictures."""


class ChatModel(ServedModel[ChatRequest, Answer], Protocol):
    """A model that answers; `ChatRequest.voice` is None or one of `voices`' ids."""

    @property
    def takes(self) -> frozenset[Modality]:
        """The kinds of parts that a message may have."""
        ...

    @property
    def calls_tools(self) -> bool:
        """Whether requests may have tools."""
        ...

    @property
    def thinks(self) -> bool:
        """Whether requests may ask it to think before it answers."""
        ...

    @property
    def options(self) -> frozenset[AnswerOption]:
        """What requests may ask of it besides."""
        ...

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The voices that can speak an answer, the default first. Empty: it answers in text
        only."""
        ...

    @property
    def spoken_by(self) -> str | None:
        """Name of the model that speaks its answers, if its deployment says so."""
        ...

    @property
    def sample_rate(self) -> int:
        """Sample rate in Hz; 0 without voices. Known once the service is ready."""
        ...

    @property
    def channels(self) -> int:
        """Channels of the sound; 0 without voices."""
        ...

    def get_voice(self, name: str | None) -> Voice:
        """The voice with this id, name or alias; None is the default voice. Raises VoiceNotFound:
        none has it; the message lists the valid ids."""
        ...


class ChatService(SpeechService, Protocol):
    """All models of one server, including those that answer messages."""

    @property
    def chat_models(self) -> Mapping[str, ChatModel]:
        """Models that answer messages, by name, in the order of the configuration."""
        ...

    def get_chat_model(self, name: str | None) -> ChatModel:
        """The model with this name, or the first one for None. Raises ModelNotFound: none has it;
        the message lists the valid names."""
        ...
