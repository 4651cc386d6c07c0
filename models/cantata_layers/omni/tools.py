"""Tools in a dialogue, as Qwen's templates lay them out (the form of Nous Research's Hermes).

Calls are found in an answer while it is written: `<tool_call>`, an object of JSON with `name` and
`arguments`, `</tool_call>`. What does not have this form is the model's words. The marks are
ordinary tokens of the vocabulary, so all of it is text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

from cantata.contract.data.chat import (
    CallArguments,
    CallStarted,
    ChatRequest,
    Message,
    MessagePart,
    Role,
    TextPart,
    ToolCall,
)
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.conversation import Written
from cantata_layers.chat_template import load_chat_template

_SYSTEM_BEGIN, _TURN_END = "<|im_start|>system\n", "<|im_end|>\n"
_EMPTY_TURN = f"<|im_start|>user\n{_TURN_END}"


class ToolTemplate:
    """A checkpoint's own words about tools; the rest of its template is `prompt.PromptLayout`.

    Raises:
        ConfigError: the template is damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._template, file = load_chat_template(checkpoint)
        self._where = str(checkpoint / file)
        self.has_tools = "tools" in self._template and "<tool_call>" in self._template
        """Whether the model was made for them."""
        if self.has_tools:
            try:
                for system in (None, "s"):
                    self._build_system(system, ['{"type": "function", "function": {"name": "f"}}'])
            except Exception as error:  # whatever a template raises
                raise ConfigError(f"{self._where}: tools cannot be described: {error}") from error

    def written(self, request: ChatRequest) -> tuple[Message, ...]:
        """The request's messages with its tools, calls and their results as text."""
        messages = list(request.messages)
        if request.tools:
            first, *rest = messages
            system = first if first.role is Role.SYSTEM else None
            message = self._build_system(
                None if system is None else _read_text(system), request.tools
            )
            messages = [
                _build_message(Role.SYSTEM, message),
                *(messages if system is None else rest),
            ]
        return tuple(_merge_results([_with_calls(message) for message in messages]))

    def _build_system(self, system: str | None, tools: Sequence[str]) -> str:
        """What the system says when there are tools. `system`: what it says anyhow."""
        message = {"role": "user", "content": ""}
        if system is not None:
            message = {"role": "system", "content": system}
        described = [json.loads(tool) for tool in tools]
        render: Any = render_jinja_template  # declares less than it returns
        rendered, _ = render(
            conversations=[[message]], tools=described, chat_template=self._template
        )
        whole: str = rendered[0]
        if system is None:
            whole = whole.removesuffix(_EMPTY_TURN)
        if not (whole.startswith(_SYSTEM_BEGIN) and whole.endswith(_TURN_END)):
            raise ConfigError(f"{self._where}: a system's turn has another form: {whole[:80]!r}")
        return whole[len(_SYSTEM_BEGIN) : -len(_TURN_END)]


def _with_calls(message: Message) -> Message:
    """What a tool said is the user's turn; an assistant's calls follow its words."""
    if message.role is Role.TOOL:
        return _build_message(
            Role.TOOL, f"<tool_response>\n{_read_text(message)}\n</tool_response>"
        )
    if not message.calls:
        return message
    words = _read_text(message)
    lines = [*([words] if words else []), *(_call(call) for call in message.calls)]
    return _build_message(message.role, "\n".join(lines))


def _call(call: ToolCall) -> str:
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'


def _merge_results(messages: Sequence[Message]) -> list[Message]:
    """Messages with consecutive results of tools joined into one turn of the user."""
    merged: list[Message] = []
    results: list[MessagePart] = []
    for message in messages:
        if message.role is Role.TOOL:
            results = [*results, *([TextPart("\n")] if results else []), *message.parts]
            continue
        if results:
            merged.append(Message(Role.USER, tuple(results)))
            results = []
        merged.append(message)
    return [*merged, Message(Role.USER, tuple(results))] if results else merged


def _build_message(role: Role, text: str) -> Message:
    return Message(role, (TextPart(text),))


def _read_text(message: Message) -> str:
    """The text of a message without media."""
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)')


class ToolCallReader:
    """Implements `contract.model.conversation.CallReader`. A call begins when its name is known;
    its arguments follow as they are written."""

    def __init__(self) -> None:
        self._held = ""
        """Read, and not told yet."""
        self._step: Callable[[], bool] = self._read_words
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
        if self._step == self._read_words:
            self._emit(self._held)
        elif self._step == self._read_head:
            self._emit(_OPEN + self._held)
        self._held = ""
        return self._take()

    def _take(self) -> list[Written]:
        parsed, self._parsed = self._parsed, []
        return parsed

    def _read_words(self) -> bool:
        before, mark, behind = self._held.partition(_OPEN)
        if not mark:
            cut = self._held.rfind("<")
            keeps = cut >= 0 and _OPEN.startswith(self._held[cut:])
            before, behind = (before[:cut], before[cut:]) if keeps else (before, "")
        self._emit(before)
        self._held = behind
        if mark:
            self._step = self._read_head
        return bool(mark)

    def _read_head(self) -> bool:
        end = self._held.find(_CLOSE)
        head = _HEAD.match(self._held)
        if head is not None and (end < 0 or head.end() <= end) and _is_json(head[1]):
            self._parsed.append(CallStarted(json.loads(head[1])))
            self._held = self._held[head.end() :]
            self._nesting, self._step = _Nesting(), self._read_arguments
            return True
        if end < 0:
            return False
        self._read_whole(self._held[:end])
        self._close(end)
        return True

    def _read_arguments(self) -> bool:
        end = self._nesting.feed(self._held)
        complete = end is not None
        if self._held:
            self._parsed.append(CallArguments(self._held[:end]))
        self._held = self._held[end:] if complete else ""
        if complete:
            self._step = self._read_tail
        return complete

    def _read_tail(self) -> bool:
        end = self._held.find(_CLOSE)
        if end < 0:
            return False
        self._behind_call = True
        self._close(end)
        return True

    def _close(self, end: int) -> None:
        self._held = self._held[end + len(_CLOSE) :]
        self._step = self._read_words

    def _read_whole(self, body: str) -> None:
        """A call in another order, or none."""
        found = _parse_object(body)
        name, arguments = found.get("name"), found.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict):
            self._emit(_OPEN + body + _CLOSE)
            return
        written = json.dumps(arguments, ensure_ascii=False)
        self._parsed += [CallStarted(name), CallArguments(written)]
        self._behind_call = True

    def _emit(self, words: str) -> None:
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


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
