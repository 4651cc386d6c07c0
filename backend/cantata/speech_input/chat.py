"""The interface of a chat: messages in, the text of an answer out while it is written.

`Responder` answers by a few rules, so that you can talk to a server without a network.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from cantata.contract.data.errors import CantataError

Role = Literal["system", "user", "assistant", "tool"]

UNINTELLIGIBLE = "[The user's words could not be understood.]"
"""Stands for sound in which no words were recognized."""
SILENT = "[The user has been silent for a while.]"
"""Stands for a silence after which an answer is due (`idle_timeout_ms`)."""

UNANSWERED = "[The function has not answered.]"
"""Stands for the result of a call that has none."""


class ChatFailed(CantataError):
    """The chat could not answer."""

    code = "chat_failed"


@dataclass(frozen=True, slots=True)
class ChatCall:
    id: str
    name: str
    arguments: str
    """JSON as it was written."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Role
    text: str
    calls: tuple[ChatCall, ...] = ()
    call_id: str | None = None
    """Of a tool's message: the call that it is the result of."""


@dataclass(frozen=True, slots=True)
class ChatTools:
    functions: tuple[dict[str, Any], ...] = ()
    """Each as `POST /chat/completions` has it under `function`."""
    choice: str | None = "auto"
    """`auto`, `required`, or None: the function named `named`."""
    named: str | None = None
    parallel: bool = True
    """False: an answer calls at most one."""


NO_TOOLS = ChatTools()


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    index: int
    """Place among the answer's calls."""
    name: str | None
    """Set in the first piece of a call, as is `id`."""
    id: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatDelta:
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
        *,
        whole: bool = False,
    ) -> AsyncGenerator[ChatDelta, None]:
        """The next message, in pieces. Closing the iterator, or cancelling, ends the work.

        Args:
            max_tokens: most tokens of the message.
            whole: a conversation that is too long fails, rather than losing its beginning.

        Raises:
            ChatFailed: says why.
        """
        ...

    async def close(self) -> None: ...


_PIECE = re.compile(r"\S+\s*")
_WHO = "I am a small set of rules in this server, not a language model."
_UNHEARD = "I heard a sound, but no words. Please say that again."
_SILENT = "Are you still there?"
_MAX_WORDS = 30
"""Most words that are repeated."""


class Responder:
    """Introduces itself, tells the time, and repeats what it heard."""

    choices = ()

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int | None,
        tools: ChatTools = NO_TOOLS,
        *,
        whole: bool = False,
    ) -> AsyncGenerator[ChatDelta, None]:
        for piece in _PIECE.findall(answer_to(messages, datetime.now())):
            yield ChatDelta(piece)

    async def close(self) -> None:
        pass


def answer_to(messages: Sequence[ChatMessage], now: datetime) -> str:
    """The answer to the last thing that the user said."""
    text = next((one.text for one in reversed(messages) if one.role == "user"), "").strip()
    words = set(re.findall(r"[a-z']+", text.lower()))
    if not text or text == UNINTELLIGIBLE:
        return _UNHEARD
    if text == SILENT:
        return _SILENT
    if "who" in words and words & {"you", "are"}:
        return _WHO
    if words & {"hello", "hi"} or "good morning" in text.lower():
        return f"Hello. {_WHO} I repeat what you say."
    if "time" in words:
        return f"It is {now:%H:%M}."
    repeated = " ".join(text.split()[:_MAX_WORDS])
    return f"You said: {repeated.rstrip('.!?')}."
