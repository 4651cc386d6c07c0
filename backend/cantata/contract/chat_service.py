"""What the api asks of a model that thinks: an answer in text, spoken while it is written.

The life of an answer is that of an utterance (`contract.service`): entered, iterated, left.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from cantata.contract.data.chat import CallArguments, CallStarted, ChatRequest, Modality, Thought
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.request import Voice
from cantata.contract.service import AdmissionReport, SpeechChunk, SpeechService


class FinishReason(StrEnum):
    """Why an answer's text has ended."""

    STOP = "stop"
    """The model ended it."""
    LENGTH = "length"
    """It reached its maximum number of tokens."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of an answer, never cut inside a character. It may be empty."""

    text: str
    tokens: int
    """That it came from."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """No text follows; sound may."""

    reason: FinishReason


AnswerEvent = Thought | TextDelta | CallStarted | CallArguments | TextEnd | SpeechChunk


@dataclass(frozen=True, slots=True)
class Answer:
    """One request that is being answered. Iterating over it gives its events, once: its thought
    before its text, text and sound as they are made, exactly one `TextEnd`.

    Raises:
        RequestFailed: a stage could not finish it (`ChunkTimeout`: no chunk in time).
        StageDied: a process that held it died.
    """

    request_id: str
    """The id by which the stages know it."""
    prompt_tokens: int
    """Of the conversation, with its sounds and pictures."""
    milestones: tuple[Milestone, ...]
    """What was done before it was handed to the stages: `TEXT`, `ADMIT`."""
    events: AsyncIterator[AnswerEvent]
    """Untaken sound stops the production of more; text is never held up by it."""

    def __aiter__(self) -> AsyncIterator[AnswerEvent]:
        return self.events


class ChatModel(Protocol):
    """One model, ready to answer."""

    @property
    def name(self) -> str:
        """The id by which clients ask for it."""
        ...

    @property
    def takes(self) -> frozenset[Modality]:
        """What a message's parts may be."""
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
    def voices(self) -> tuple[Voice, ...]:
        """That can speak an answer, the default first; empty: it answers in text alone."""
        ...

    @property
    def sample_rate(self) -> int:
        """Hz; 0 without voices. Known once the service is ready."""
        ...

    @property
    def channels(self) -> int:
        """Of the sound; 0 without voices."""
        ...

    @property
    def admission(self) -> AdmissionReport:
        """Running and waiting requests."""
        ...

    def voice(self, name: str | None) -> Voice:
        """The voice with this id, name or alias; None is the default voice.

        Raises:
            VoiceNotFound: none has it; the message lists the valid ids.
        """
        ...

    def check_room(self) -> None:
        """Reject a request if the queue has no room; takes microseconds.

        Raises:
            Overloaded: the queue is full.
        """
        ...

    def answer(self, request: ChatRequest) -> AbstractAsyncContextManager[Answer]:
        """Continue a conversation; `request.voice` is None or one of `voices`' ids.

        Leaving the context, at the end as well as on an error or a cancellation, returns only
        when every stage has freed the request.

        Raises:
            Overloaded: at capacity (on entering).
            InvalidRequest: a part or an option cannot be served (on entering).
        """
        ...


class ChatService(SpeechService, Protocol):
    """Every model of one server, those that think among them."""

    @property
    def chat_models(self) -> Mapping[str, ChatModel]:
        """By name, in the order of the configuration; empty if none thinks."""
        ...

    def chat_model(self, name: str | None) -> ChatModel:
        """The model of this name, None the first.

        Raises:
            ModelNotFound: none has it; the message lists the valid names.
        """
        ...
