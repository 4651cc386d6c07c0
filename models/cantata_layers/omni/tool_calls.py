"""Finds calls in an answer while it is written: `<tool_call>`, an object of JSON with `name` and
`arguments`, `</tool_call>`. What does not have this form is the model's words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from cantata.contract.data.chat import CallArguments, CallStarted
from cantata.contract.model.conversation import Written

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)')


class ToolCallReader:
    """Implements `contract.model.conversation.CallReader`. A call begins when its name is known;
    its arguments follow as they are written."""

    def __init__(self) -> None:
        self._held = ""
        """Read, and not told yet."""
        self._step: Callable[[], bool] = self._words
        """Tells what it can; False: it needs more text."""
        self._nesting = _Nesting()
        """Of the arguments in progress."""
        self._behind_call = False
        """Spaces there are no words."""
        self._parsed: list[Written] = []

    def read(self, text: str) -> list[Written]:
        """What some more text says."""
        self._held += text
        while self._step():
            pass
        return self._take()

    def end(self) -> list[Written]:
        """What was held back; arguments that are cut stay so."""
        if self._step == self._words:
            self._say(self._held)
        elif self._step == self._head:
            self._say(_OPEN + self._held)
        self._held = ""
        return self._take()

    def _take(self) -> list[Written]:
        parsed, self._parsed = self._parsed, []
        return parsed

    def _words(self) -> bool:
        before, mark, behind = self._held.partition(_OPEN)
        if not mark:
            cut = self._held.rfind("<")
            keeps = cut >= 0 and _OPEN.startswith(self._held[cut:])
            before, behind = (before[:cut], before[cut:]) if keeps else (before, "")
        self._say(before)
        self._held = behind
        if mark:
            self._step = self._head
        return bool(mark)

    def _head(self) -> bool:
        end = self._held.find(_CLOSE)
        head = _HEAD.match(self._held)
        if head is not None and (end < 0 or head.end() <= end) and _is_json(head[1]):
            self._parsed.append(CallStarted(json.loads(head[1])))
            self._held = self._held[head.end() :]
            self._nesting, self._step = _Nesting(), self._arguments
            return True
        if end < 0:
            return False
        self._whole(self._held[:end])
        self._close(end)
        return True

    def _arguments(self) -> bool:
        end = self._nesting.feed(self._held)
        complete = end is not None
        if self._held:
            self._parsed.append(CallArguments(self._held[:end]))
        self._held = self._held[end:] if complete else ""
        if complete:
            self._step = self._tail
        return complete

    def _tail(self) -> bool:
        end = self._held.find(_CLOSE)
        if end < 0:
            return False
        self._behind_call = True
        self._close(end)
        return True

    def _close(self, end: int) -> None:
        self._held = self._held[end + len(_CLOSE) :]
        self._step = self._words

    def _whole(self, body: str) -> None:
        """A call in another order, or none."""
        found = _object(body)
        name, arguments = found.get("name"), found.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            self._say(_OPEN + body + _CLOSE)
            return
        written = json.dumps(arguments, ensure_ascii=False)
        self._parsed += [CallStarted(name), CallArguments(written)]
        self._behind_call = True

    def _say(self, words: str) -> None:
        if self._behind_call:
            words = words.lstrip()
        if words:
            self._behind_call = False
            self._parsed.append(words)


class _Nesting:
    """Finds where an object of JSON ends."""

    def __init__(self) -> None:
        self._depth = 0
        self._quoted = self._escaped = False

    def feed(self, text: str) -> int | None:
        """The place behind the object's end; None: it goes on."""
        for place, character in enumerate(text):
            if self._quoted:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                else:
                    self._quoted = character != '"'
                continue
            self._quoted = character == '"'
            self._depth += (character in "{[") - (character in "}]")
            if self._depth == 0:
                return place + 1
        return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
