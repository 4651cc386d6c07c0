"""The interface of a chat: messages in, the text of an answer out while it is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from cantata.contract.data.errors import CantataError

Role = Literal["system", "user", "assistant", "tool"]

UNINTELLIGIBLE = "[The user's words could not be understood.]"
"""Stands for sound in which no words were recognised."""
SILENT = "[The user has been silent for a while.]"
"""Stands for a silence after which an answer is due (`idle_timeout_ms`)."""


class ChatFailed(CantataError):
    """The chat could not answer."""

    code = "chat_failed"


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call of a function."""

    id: str
    name: str
    arguments: str
    """JSON as it was written."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: Role
    text: str
    calls: tuple[ChatCall, ...] = ()
    """Tool calls of the assistant."""
    call_id: str | None = None
    """Of a tool's message: the call that it is the result of."""


@dataclass(frozen=True, slots=True)
class ChatTools:
    """What an answer may call."""

    functions: tuple[dict[str, Any], ...] = ()
    """Each as `POST /chat/completions` has it under `function`."""
    choice: str | None = "auto"
    """`auto`, `required`, or None: the function named `named`."""
    named: str | None = None


NO_TOOLS = ChatTools()


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a call."""

    index: int
    """Place among the answer's calls."""
    name: str | None
    """Set in the first piece of a call, as is `id`."""
    id: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of an answer."""

    text: str
    cut: bool = False
    """The answer ends here because it has reached its longest allowed length."""
    call: ToolCallDelta | None = None


class Chat(Protocol):
    """A chat that serves all sessions."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What a `tool_choice` may be: `auto`, `required`, `function`; empty: it calls no tools."""
        ...

    def answer(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int | None,
        tools: ChatTools = NO_TOOLS,
    ) -> AsyncGenerator[ChatDelta, None]:
        """The next message, in pieces. Closing the iterator, or cancelling, ends the work.

        Raises:
            ChatFailed: says why.
        """
        ...

    async def close(self) -> None:
        """Free its resources."""
        ...
