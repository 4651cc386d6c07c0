"""The interface of a chat: messages in, the text of an answer out while it is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cantata.contract.data.errors import CantataError

Role = Literal["system", "user", "assistant"]

UNINTELLIGIBLE = "[The user's words could not be understood.]"
"""Stands for sound in which no words were recognised."""
SILENT = "[The user has been silent for a while.]"
"""Stands for a silence after which an answer is due (`idle_timeout_ms`)."""


class ChatFailed(CantataError):
    """The chat could not answer."""

    code = "chat_failed"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ChatDelta:
    """A piece of an answer."""

    text: str
    cut: bool = False
    """The answer ends here because it has reached its longest allowed length."""


class Chat(Protocol):
    """A chat that serves all sessions."""

    def answer(
        self, messages: Sequence[ChatMessage], max_tokens: int | None
    ) -> AsyncGenerator[ChatDelta, None]:
        """The next message, in pieces. Closing the iterator, or cancelling, ends the work.

        Raises:
            ChatFailed: says why.
        """
        ...

    async def close(self) -> None:
        """Free its resources."""
        ...
