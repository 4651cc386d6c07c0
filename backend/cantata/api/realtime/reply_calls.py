"""The calls of functions in one answer, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cantata.api.realtime.conversation import FunctionCall, Item
from cantata.api.realtime.server_events import (
    ArgumentsDelta,
    ArgumentsDone,
    ItemEvent,
    OutputItemEvent,
    ServerEvent,
    new_id,
)
from cantata.speech_input.chat import ToolCallDelta

Keep = Callable[[Item], str | None]
"""Puts an item at the conversation's end; the id of the one before it."""


@dataclass(slots=True)
class _Open:
    """A call as far as it has come."""

    item: Item
    call: FunctionCall
    output_index: int
    previous: str | None


class ReplyCalls:
    """Of one answer. `keep`: None: the answer is not kept in the conversation."""

    def __init__(self, response_id: str, keep: Keep | None) -> None:
        self._response_id, self._keep = response_id, keep
        self._calls: list[_Open] = []
        self._done = 0
        """Calls whose end has been told."""

    @property
    def items(self) -> list[Item]:
        return [one.item for one in self._calls]

    @property
    def characters(self) -> int:
        """Characters of all arguments."""
        return sum(len(one.call.arguments) for one in self._calls)

    def take(self, piece: ToolCallDelta, output_index: int) -> list[ServerEvent]:
        """Events for more of a call; another one before it is complete. `output_index`: of the
        answer's first call."""
        events: list[ServerEvent] = []
        if piece.name is not None:
            events = [*self.finish("completed"), *self._begin(piece, output_index)]
        if piece.arguments and self._calls:
            current = self._calls[-1]
            current.call.arguments += piece.arguments
            events.append(
                ArgumentsDelta(
                    response_id=self._response_id,
                    item_id=current.item.id,
                    output_index=current.output_index,
                    call_id=current.call.call_id,
                    delta=piece.arguments,
                )
            )
        return events

    def finish(self, status: str) -> list[ServerEvent]:
        """Events for the end of the call in progress, if there is one. `status`: `completed`, or
        `incomplete` for a call that was cut off."""
        ended, self._done = self._calls[self._done :], len(self._calls)
        return [event for one in ended for event in self._end_call(one, status)]

    def _begin(self, piece: ToolCallDelta, output_index: int) -> Sequence[ServerEvent]:
        call = FunctionCall(piece.id or new_id("call"), piece.name or "")
        item = Item(new_id("item"), "assistant", [], "in_progress", call=call)
        previous = None if self._keep is None else self._keep(item)
        index = output_index + len(self._calls)
        self._calls.append(_Open(item, call, index, previous))
        added = OutputItemEvent(
            type="response.output_item.added",
            response_id=self._response_id,
            output_index=index,
            item=item.to_object(),
        )
        return [added, *self._build_item_events("conversation.item.added", self._calls[-1])]

    def _end_call(self, one: _Open, status: str) -> Sequence[ServerEvent]:
        one.item.status = status
        return [
            ArgumentsDone(
                response_id=self._response_id,
                item_id=one.item.id,
                output_index=one.output_index,
                call_id=one.call.call_id,
                name=one.call.name,
                arguments=one.call.arguments,
            ),
            OutputItemEvent(
                type="response.output_item.done",
                response_id=self._response_id,
                output_index=one.output_index,
                item=one.item.to_object(),
            ),
            *self._build_item_events("conversation.item.done", one),
        ]

    def _build_item_events(self, kind: str, one: _Open) -> Sequence[ServerEvent]:
        if self._keep is None:
            return ()
        fields = {"type": kind, "item": one.item.to_object(), "previous_item_id": one.previous}
        return (ItemEvent.model_validate(fields),)
