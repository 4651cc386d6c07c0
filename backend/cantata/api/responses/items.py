"""The items of an answer, as they grow: a thought, words, calls."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from cantata.api.chat.answers import ChoiceLogprobs
from cantata.api.chat.measured_answer import AnswerCallDelta, ChoiceDelta
from cantata.api.responses.objects import (
    OutputCall,
    OutputItem,
    OutputMessage,
    OutputText,
    OutputThought,
    Status,
    ThoughtText,
)
from cantata.contract.data.chat import Thought

Fields = tuple[str, dict[str, Any]]
"""An event's type, and what it has besides."""


class GrowingItems:
    """Collects an answer's pieces in items, one after the other; what is new becomes events."""

    def __init__(self) -> None:
        self._done = list[OutputItem]()
        self._open: OutputItem | None = None
        """Without its text."""
        self._texts = list[str]()
        self._scores = list[dict[str, Any]]()
        """Of the tokens of the open message."""
        self._call = -1

    @property
    def items(self) -> list[OutputItem]:
        """All, also the one that is open."""
        return [*self._done, *([] if self._open is None else [self._fill(self._open)])]

    def add(self, piece: ChoiceDelta, scores: ChoiceLogprobs | None = None) -> Iterator[Fields]:
        """The events of a piece, and of the scores of its tokens."""
        match piece:
            case Thought():
                if not isinstance(self._open, OutputThought):
                    thought = OutputThought(id=_create_id("rs"), content=[], status="in_progress")
                    yield from self._begin(thought)
                yield from self._grow("response.reasoning_text.delta", piece.text)
            case AnswerCallDelta():
                if piece.index != self._call:
                    yield from self._begin_call(piece)
                yield from self._grow("response.function_call_arguments.delta", piece.arguments)
            case str():
                if not isinstance(self._open, OutputMessage):
                    yield from self._begin_message()
                told = _write_scores(scores)
                self._scores += told
                yield from self._grow("response.output_text.delta", piece, logprobs=told)

    def end(
        self, status: Status = "completed", scores: ChoiceLogprobs | None = None
    ) -> Iterator[Fields]:
        """The last events of the open item. `status`: `incomplete` if the answer was cut off in
        it."""
        if self._open is None:
            return
        self._scores += _write_scores(scores)
        place, text = self._build_place(), "".join(self._texts)
        item = self._fill(self._open, status)
        match item:
            case OutputMessage():
                yield (
                    "response.output_text.done",
                    {**place, "text": text, "logprobs": [*self._scores]},
                )
                part = item.content[0].model_dump()
                yield "response.content_part.done", {**place, "part": part}
            case OutputThought():
                yield "response.reasoning_text.done", {**place, "text": text}
            case OutputCall():
                more = {"name": item.name, "arguments": text}
                yield "response.function_call_arguments.done", {**place, **more}
        fields = {"output_index": len(self._done), "item": item.model_dump()}
        yield "response.output_item.done", fields
        self._done.append(item)
        self._open = None

    def _fill(self, item: OutputItem, status: Status = "in_progress") -> OutputItem:
        text = "".join(self._texts)
        filled: dict[str, Any] = {"status": status}
        match item:
            case OutputMessage():
                filled["content"] = [OutputText(text=text, logprobs=[*self._scores])]
            case OutputThought():
                filled["content"] = [ThoughtText(text=text)]
            case OutputCall():
                filled["arguments"] = text
        return item.model_copy(update=filled)

    def _begin(self, item: OutputItem) -> Iterator[Fields]:
        yield from self.end()
        self._open = item
        self._texts.clear()
        self._scores.clear()
        fields = {"output_index": len(self._done), "item": item.model_dump()}
        yield "response.output_item.added", fields

    def _begin_message(self) -> Iterator[Fields]:
        yield from self._begin(
            OutputMessage(id=_create_id("msg"), status="in_progress", content=[])
        )
        part = OutputText(text="").model_dump()
        yield "response.content_part.added", {**self._build_place(), "part": part}

    def _begin_call(self, piece: AnswerCallDelta) -> Iterator[Fields]:
        assert piece.id is not None
        assert piece.name is not None
        self._call = piece.index
        call = OutputCall(
            id=_create_id("fc"),
            call_id=piece.id,
            name=piece.name,
            arguments="",
            status="in_progress",
        )
        yield from self._begin(call)

    def _grow(self, name: str, text: str, **more: Any) -> Iterator[Fields]:
        if text:
            self._texts.append(text)
            yield name, {**self._build_place(), "delta": text, **more}

    def _build_place(self) -> dict[str, Any]:
        assert self._open is not None
        place = {"item_id": self._open.id, "output_index": len(self._done)}
        return place if isinstance(self._open, OutputCall) else {**place, "content_index": 0}


def _write_scores(scores: ChoiceLogprobs | None) -> list[dict[str, Any]]:
    return [] if scores is None else [one.model_dump() for one in scores.content]


def _create_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"
