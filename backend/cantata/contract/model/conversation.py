"""What a model that answers messages provides: conversations to stage inputs, tokens to text.

Letters: T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import (
    AnswerOption,
    CallArguments,
    CallStarted,
    ChatRequest,
    Modality,
    Thought,
)
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import PipelineRequest, Voice


@dataclass(frozen=True, slots=True)
class AnswerSteps:
    """What an answer takes of a stage that denoises."""

    reading: int
    """Steps that read the conversation."""
    read: ForwardSize
    """Size of their forwards, together."""
    writing: int
    """Steps that write, a token each, at most: the text may end before."""
    write: ForwardSize
    """Size of the first such forward."""


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """A conversation as the pipeline runs it."""

    request: PipelineRequest
    prompt_tokens: int
    """Tokens of the thinker's prompt."""
    steps: AnswerSteps | None = None
    """Only for a model that also draws: its answers and pictures share a stage, and admission."""


class TextReader(Protocol):
    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, without what may be part of an unfinished character."""
        ...

    def end(self) -> str:
        """The text that was held back."""
        ...


Written = str | CallStarted | CallArguments
"""A piece of an answer's text: words for the user, or a part of a tool call."""


class CallReader(Protocol):
    """Separates an answer's words from its tool calls. The result does not depend on how the text
    is cut into pieces."""

    def read(self, text: str) -> Sequence[Written]:
        """The content of more text, without what may be part of an unfinished mark."""
        ...

    def end(self) -> Sequence[Written]:
        """The content that was held back."""
        ...


class ThoughtReader(Protocol):
    """Separates an answer's thought from its words. The result does not depend on how the text is
    cut into pieces."""

    @property
    def thinking(self) -> bool | None:
        """Whether the text is still in the thought; None: not known yet."""
        ...

    def read(self, text: str) -> Sequence[Thought | str]:
        """The content of more text, without what may be part of a mark; thoughts count no
        tokens."""
        ...

    def end(self) -> Sequence[Thought | str]:
        """The content that was held back."""
        ...


class AnswerParser(Protocol):
    """Turns one answer's tokens into its thought, its words and its tool calls. The result does
    not depend on how the tokens are cut into pieces."""

    @property
    def thinking(self) -> bool:
        """Whether the tokens read last were thought."""
        ...

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Sequence[Thought | Written]:
        """The content of [T] more tokens, without what may be part of an unfinished character or
        mark; thoughts count no tokens. `last`: none follow."""
        ...


class ConversationBuilder(Protocol):
    """Turns conversations into stage inputs, in the api process.

    Light to load (no weights) and safe to call from a worker thread.
    """

    @property
    def takes(self) -> frozenset[Modality]:
        """The kinds of parts that a message may have."""
        ...

    @property
    def voices(self) -> tuple[Voice, ...]:
        """The voices that can speak an answer, the default first. Empty: none."""
        ...

    @property
    def text(self) -> str:
        """The `stage.port` from which an answer's tokens go to the client, one code each."""
        ...

    @property
    def warm_up(self) -> ChatRequest:
        """Conversations that are answered and discarded before the model is ready."""
        ...

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Stage inputs for a conversation. Without a voice, the stages that speak are left out.
        Raises InvalidRequest: a part or an option cannot be served."""
        ...


class ChatBuilder(ConversationBuilder, Protocol):
    """A builder whose answers are text with marks around what is more than words."""

    def reader(self) -> TextReader: ...

    def call_reader(self) -> CallReader | None:
        """A reader for one answer to a request with tools. None: the model does not support tools,
        so it gets no `ChatRequest.tools`, no `Message.calls` and no messages of tools."""
        ...


@runtime_checkable
class ThinkingChatBuilder(ChatBuilder, Protocol):
    """A builder whose model may think in words before it answers (`ChatRequest.thinks`)."""

    def thought_reader(self) -> ThoughtReader:
        """A reader for one answer to a request that asks for a thought."""
        ...


@runtime_checkable
class ParsedChatBuilder(ConversationBuilder, Protocol):
    """A builder whose answers are read token by token, because their marks are tokens."""

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

    def prepare(self, request: ChatRequest) -> Callable[[], object] | None:
        """What makes, and keeps for `build`, something that takes long to make, such as a grammar.
        None: it is kept already, or nothing is needed. Asked before `build`, for requests with a
        format or tools. It may raise what this raises, too.

        Raises:
            InvalidRequest: it cannot be made.
        """
        ...

    def token_bytes(self, token: int) -> bytes:
        """A token as UTF-8; it may be a part of a character."""
        ...

    def parser(self, request: ChatRequest, planned: PlannedAnswer) -> AnswerParser: ...


AnyChatBuilder = ChatBuilder | ParsedChatBuilder


def calls_tools(builder: AnyChatBuilder) -> bool:
    if isinstance(builder, ParsedChatBuilder):
        return builder.calls_tools
    return builder.call_reader() is not None
