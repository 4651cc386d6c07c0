"""What a model that thinks provides: conversations to stage inputs, tokens to text.

Letters: T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import CallArguments, CallStarted, ChatRequest, Modality, Thought
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import PipelineRequest, Voice


@dataclass(frozen=True, slots=True)
class AnswerSteps:
    """What an answer takes of a stage that denoises."""

    reading: int
    """Steps that read the conversation."""
    read: ForwardSize
    """Of their forwards, together."""
    writing: int
    """Steps that write, a token each, at most: the text may end before."""
    write: ForwardSize
    """Of the first such forward."""


@dataclass(frozen=True, slots=True)
class PlannedAnswer:
    """A conversation as the pipeline runs it."""

    request: PipelineRequest
    prompt_tokens: int
    """Positions of the thinker's prompt."""
    steps: AnswerSteps | None = None
    """Of a model that draws too: its answers and pictures share a stage, and admission to it."""


class TextReader(Protocol):
    """One answer's tokens as text."""

    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, less what may be part of an unfinished character."""
        ...

    def end(self) -> str:
        """What was held back."""
        ...


Written = str | CallStarted | CallArguments
"""What an answer's text says: words for the user, or calls of tools."""


class CallReader(Protocol):
    """Tells an answer's words from its calls. What it finds, put together, does not depend on how
    the text is cut."""

    def read(self, text: str) -> Sequence[Written]:
        """What some more text says, less what may be part of an unfinished mark."""
        ...

    def end(self) -> Sequence[Written]:
        """What was held back."""
        ...


class ThoughtReader(Protocol):
    """Tells an answer's thought from its words. What it finds, put together, does not depend on how
    the text is cut."""

    @property
    def thinking(self) -> bool | None:
        """Whether the text is in its thought; None: too little has come to tell."""
        ...

    def read(self, text: str) -> Sequence[Thought | str]:
        """What some more text says, less what may be part of a mark; thoughts count no tokens."""
        ...

    def end(self) -> Sequence[Thought | str]:
        """What was held back."""
        ...


class ChatBuilder(Protocol):
    """Turns conversations into stage inputs, in the api process.

    Light to load (no weights) and safe to call from a worker thread.
    """

    @property
    def takes(self) -> frozenset[Modality]:
        """What a message's parts may be."""
        ...

    @property
    def voices(self) -> tuple[Voice, ...]:
        """That can speak an answer, the default first; empty: none."""
        ...

    @property
    def text(self) -> str:
        """`stage.port` at which an answer's tokens leave for the client, one code each."""
        ...

    @property
    def warm_up(self) -> ChatRequest:
        """Answered and discarded before the model is ready."""
        ...

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        """Stage inputs for a conversation. Without a voice, the stages that speak are left out.

        Raises:
            InvalidRequest: a part or an option cannot be served.
        """
        ...

    def reader(self) -> TextReader:
        """For one answer."""
        ...

    def call_reader(self) -> CallReader | None:
        """For one answer to a request with tools. None: the model knows none, and
        `ChatRequest.tools`, `Message.calls` and messages of tools are not for it."""
        ...


@runtime_checkable
class ThinkingChatBuilder(ChatBuilder, Protocol):
    """A builder whose model may think in words before it answers (`ChatRequest.thinks`)."""

    def thought_reader(self) -> ThoughtReader:
        """For one answer to a request that asks for a thought."""
        ...
