"""Conversations as strict chat templates want them.

People speak twice in a row, or after an answer that was cut off before its first word, and
assistants greet first. Templates such as Gemma's and Mistral's refuse all of that, and Gemma 2's
refuses instructions, too. What each takes shows when it is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum

from cantata.speech_input.chat import ChatMessage

OPENING = "[The conversation begins.]"
"""Stands for the user's message where a conversation needs one and has none."""


class MessageLayout(IntEnum):
    """How messages are laid out, the least changed first."""

    AS_SAID = 0
    ALTERNATING = 1
    """User and assistant take turns, the user first; the instructions are one message."""
    WITHOUT_SYSTEM = 2
    """As before, and the instructions begin the first message."""


def lay_out(
    instructions: Sequence[ChatMessage], messages: Sequence[ChatMessage], layout: MessageLayout
) -> list[ChatMessage]:
    """A conversation's messages, at least one of them the user's. `messages`: all others."""
    messages = messages or [ChatMessage("user", OPENING)]
    if layout is MessageLayout.AS_SAID:
        return [*instructions, *messages]
    system = "\n\n".join(one.text for one in instructions)
    turns = _alternate(messages)
    if not system:
        return turns
    if layout is MessageLayout.ALTERNATING:
        return [ChatMessage("system", system), *turns]
    return [replace(turns[0], text=f"{system}\n\n{turns[0].text}"), *turns[1:]]


def _alternate(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Neighbours of a role as one message. Calls end theirs: what they came to follows."""
    turns: list[ChatMessage] = []
    for one in messages:
        last = turns[-1] if turns else None
        if last is None and one.role != "user":
            turns.append(ChatMessage("user", OPENING))
        if last is not None and last.role == one.role != "tool" and not last.calls:
            turns[-1] = replace(one, text=f"{last.text}\n{one.text}".strip())
        else:
            turns.append(one)
    return turns
