"""Answers by a few rules, so that you can talk to a server without a network."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from cantata.speech_input.chat import (
    NO_TOOLS,
    SILENT,
    UNINTELLIGIBLE,
    ChatDelta,
    ChatMessage,
    ChatTools,
)

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
