"""A cascade's answers from a model of this server that writes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from cantata.api.chat.measured_answer import AnswerCallDelta, open_answer
from cantata.api.realtime.message_layouts import MessageLayout, lay_out
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import (
    AnswerOption,
    ChatRequest,
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolChoice,
)
from cantata.contract.data.errors import ContextFull, InvalidRequest
from cantata.metrics import Metrics
from cantata.speech_input.chat import NO_TOOLS, ChatDelta, ChatMessage, ChatTools, ToolCallDelta

_PARTS_LEFT_OUT = 4
"""How many parts a conversation that is too long is divided into: the oldest is left out, then the
next, and so on."""


class ServedChat:
    """Implements `speech_input.chat.Chat` for one session. Of a conversation that is too long, the
    model gets as much of the end as fits, and the instructions. One that its chat template refuses
    is laid out as stricter templates want it."""

    def __init__(self, model: ChatModel, metrics: Metrics) -> None:
        self._model, self._metrics = model, metrics
        self._layout = MessageLayout.AS_SAID
        """The first that the template has taken."""

    @property
    def choices(self) -> tuple[str, ...]:
        """Those that the model can be held to."""
        if not self._model.calls_tools:
            return ()
        can_be_made = AnswerOption.TOOL_CHOICE in self._model.options
        return ("auto", "required", "function") if can_be_made else ("auto",)

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        max_tokens: int | None,
        tools: ChatTools = NO_TOOLS,
        *,
        whole: bool = False,
    ) -> AsyncGenerator[ChatDelta, None]:
        """The next message, in pieces. Raises CantataError: the model could not answer."""
        instructions = [one for one in messages if one.role == "system"]
        others = [one for one in messages if one.role != "system"]
        layout = self._layout
        while True:
            request = ChatRequest(
                tuple(map(_build_message, lay_out(instructions, others, layout))),
                max_tokens=max_tokens,
                tools=tuple(map(_describe_function, tools.functions)),
                tool_choice=ToolChoice(tools.choice == "required", tools.named, tools.parallel),
            )
            begun = False
            try:
                async with aclosing(self._answer(request)) as deltas:
                    async for delta in deltas:
                        self._layout, begun = layout, True
                        yield delta
                return
            except ContextFull:
                rest = _drop_oldest(others)
                if begun or whole or not rest:
                    raise
                others = rest
            except InvalidRequest as error:
                # Only the template finds fault with all messages.
                if begun or error.param != "messages" or layout is max(MessageLayout):
                    raise
                layout = MessageLayout(layout + 1)

    async def _answer(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        async with open_answer(self._model, request, (), self._metrics) as answer:
            async for piece in answer:
                if isinstance(piece, str):
                    yield ChatDelta(piece)
                elif isinstance(piece, AnswerCallDelta):
                    made = ToolCallDelta(piece.index, piece.name, piece.id, piece.arguments)
                    yield ChatDelta("", call=made)
            yield ChatDelta("", cut=answer.finish_reason == "length")

    async def close(self) -> None:
        """The server's model stays."""


def _drop_oldest(said: Sequence[ChatMessage]) -> list[ChatMessage]:
    """A conversation without its oldest part, and without results of calls in that; empty: there is
    nothing to leave out."""
    begin = max(1, len(said) // _PARTS_LEFT_OUT)
    while begin < len(said) and said[begin].role == "tool":
        begin += 1
    return list(said[begin:])


def _build_message(message: ChatMessage) -> Message:
    parts = (TextPart(message.text),) if message.text or not message.calls else ()
    calls = tuple(ToolCall(call.name, call.arguments) for call in message.calls)
    return Message(Role(message.role), parts, calls)


def _describe_function(function: dict[str, Any]) -> str:
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False)
