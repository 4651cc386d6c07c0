"""Tools in a dialogue, as Qwen's templates lay them out (the form of Nous Research's Hermes).

Their marks (`<tool_call>` and so on) are ordinary tokens of the vocabulary, so all of it is text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

from cantata.contract.data.chat import ChatRequest, Message, Part, Role, TextPart, ToolCall
from cantata.contract.data.errors import ConfigError
from cantata_layers.chat_template import load_chat_template

_SYSTEM_BEGIN, _TURN_END = "<|im_start|>system\n", "<|im_end|>\n"
_EMPTY_TURN = f"<|im_start|>user\n{_TURN_END}"


class ToolTemplate:
    """A checkpoint's own words about tools; the rest of its template is `prompt.PromptLayout`.

    Args:
        checkpoint: its folder.

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
                    self._system(system, ['{"type": "function", "function": {"name": "f"}}'])
            except Exception as error:  # whatever a template raises
                raise ConfigError(f"{self._where}: tools cannot be described: {error}") from error

    def written(self, request: ChatRequest) -> tuple[Message, ...]:
        """The request's messages with its tools, calls and their results as text."""
        messages = list(request.messages)
        if request.tools:
            first, *rest = messages
            system = first if first.role is Role.SYSTEM else None
            message = self._system(None if system is None else _text(system), request.tools)
            messages = [_message(Role.SYSTEM, message), *(messages if system is None else rest)]
        return tuple(_merged([_with_calls(message) for message in messages]))

    def _system(self, system: str | None, tools: Sequence[str]) -> str:
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
        return _message(Role.TOOL, f"<tool_response>\n{_text(message)}\n</tool_response>")
    if not message.calls:
        return message
    words = _text(message)
    lines = [*([words] if words else []), *(_call(call) for call in message.calls)]
    return _message(message.role, "\n".join(lines))


def _call(call: ToolCall) -> str:
    return f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n</tool_call>'


def _merged(messages: Sequence[Message]) -> list[Message]:
    """With the results that follow each other in one turn of the user."""
    merged: list[Message] = []
    results: list[Part] = []
    for message in messages:
        if message.role is Role.TOOL:
            results = [*results, *([TextPart("\n")] if results else []), *message.parts]
            continue
        if results:
            merged.append(Message(Role.USER, tuple(results)))
            results = []
        merged.append(message)
    return [*merged, Message(Role.USER, tuple(results))] if results else merged


def _message(role: Role, text: str) -> Message:
    return Message(role, (TextPart(text),))


def _text(message: Message) -> str:
    """Of a message without media."""
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))
