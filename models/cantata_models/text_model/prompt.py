"""Conversations as a checkpoint's own chat template writes them."""

from __future__ import annotations

import inspect
import json
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart, ToolCall
from cantata.contract.data.errors import ConfigError, InvalidRequest

_THINKS, _EFFORT = "enable_thinking", "reasoning_effort"
_NO_EFFORT = "none"
_WORDS = re.compile(r"[A-Za-z_]\w*")


class PromptWriter:
    """Writes the prompts of one checkpoint.

    Raises:
        ConfigError: the tokenizer cannot be read, or there is no chat template.
    """

    def __init__(self, checkpoint: Path) -> None:
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(str(checkpoint))
        except Exception as error:  # whatever a tokenizer's files raise
            raise ConfigError(f"{checkpoint}: no readable tokenizer: {error}") from error
        if not self.tokenizer.is_fast:
            raise ConfigError(f"{checkpoint}: the tokenizer has no form for the package tokenizers")
        self.words: Tokenizer = self.tokenizer.backend_tokenizer
        template = self.tokenizer.chat_template
        if not template:
            raise ConfigError(
                f"{checkpoint}: there is no chat template; put chat_template.jinja into the folder"
            )
        named = template.values() if isinstance(template, dict) else (template,)
        self.template = "\n".join(named)
        """All of it."""
        rendered = inspect.signature(self.tokenizer.apply_chat_template).parameters
        self._options = {*_WORDS.findall(self.template)} - {*rendered, "messages"}
        """Names that a request may set: the template's own, not those of its rendering."""

    @property
    def can_be_asked_to_think(self) -> bool:
        """Whether the template lets a request choose."""
        return _THINKS in self.template

    @property
    def knows_effort(self) -> bool:
        """Whether the template lets a request say how much."""
        return self.can_be_asked_to_think or _EFFORT in self.template

    def choose_options(self, request: ChatRequest) -> dict[str, Any]:
        """Return what the template is given besides messages and tools, as vLLM does."""
        sent: dict[str, Any] = json.loads(request.chat_template_kwargs)
        options = {name: value for name, value in sent.items() if name in self._options}
        effort = request.reasoning_effort
        if self.can_be_asked_to_think:
            options[_THINKS] = request.thinks or effort not in (None, _NO_EFFORT)
        if effort is not None and _EFFORT in self.template:
            options[_EFFORT] = effort
        return options

    def write(self, request: ChatRequest) -> NDArray[np.int32]:
        """[P]: the tokens of a conversation, up to where its answer begins. Raises InvalidRequest:
        the template refuses it."""
        try:
            text = self.tokenizer.apply_chat_template(
                _write_messages(request.messages),
                tools=[json.loads(tool) for tool in request.tools] or None,
                add_generation_prompt=True,
                tokenize=False,
                **self.choose_options(request),
            )
        except Exception as error:  # whatever a template raises
            raise InvalidRequest(
                f"messages: this model's chat template refuses them: {error}", "messages"
            ) from error
        tokens: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        if not tokens:
            raise InvalidRequest("messages: the chat template makes no prompt of them", "messages")
        return np.array(tokens, np.int32)


def _write_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as templates take them. Results of tools come in the order of their calls."""
    written: list[dict[str, Any]] = []
    waiting = deque[tuple[str, str]]()
    called = 0
    for message in messages:
        one: dict[str, Any] = {"role": message.role.value, "content": _read_text(message)}
        if message.calls:
            ids = [f"call{called + index:05d}" for index in range(len(message.calls))]
            called += len(ids)
            pairs = list(zip(message.calls, ids, strict=True))
            waiting = deque((call.name, call_id) for call, call_id in pairs)
            one["tool_calls"] = [_call(call, call_id) for call, call_id in pairs]
        if message.role is Role.TOOL and waiting:
            one["name"], one["tool_call_id"] = waiting.popleft()
        written.append(one)
    return written


def _call(call: ToolCall, call_id: str) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:  # as the model wrote it
        arguments = call.arguments
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _read_text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))
