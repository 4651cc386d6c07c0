"""The messages that a chat answers, made of a conversation's items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cantata.api.realtime.conversation import Item
from cantata.speech_input.chat import UNANSWERED, ChatMessage


def make_messages(items: Iterable[Item]) -> list[ChatMessage]:
    """Those that say something, in order.

    Chats and templates refuse calls without results right behind them. So calls in a row are in one
    message with the words before them, and behind it is what each came to, even if that was sent
    later, or never.
    """
    said = [item.to_chat_message() for item in items]
    outputs = {one.call_id: one for one in said if one.role == "tool"}
    called = {call.id for one in said for call in one.calls}
    messages: list[ChatMessage] = []
    answered = False
    """Whether a result came after the last message, so that another call is a later step."""
    for one in said:
        last = messages[-1] if messages else None
        if one.role == "tool" and one.call_id in called:
            answered = True
        elif one.calls and last is not None and last.role == "assistant" and not answered:
            messages[-1] = replace(last, calls=(*last.calls, *one.calls))
        elif one.text or one.calls or one.role == "tool":
            messages.append(one)
            answered = False
    return [each for one in messages for each in (one, *_iterate_results(one, outputs))]


def _iterate_results(
    message: ChatMessage, outputs: dict[str | None, ChatMessage]
) -> Iterable[ChatMessage]:
    """What the calls of a message came to."""
    for call in message.calls:
        yield outputs.get(call.id) or ChatMessage("tool", UNANSWERED, call_id=call.id)
