"""Between the Responses API and chat completions, which do the work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError

from cantata.api.chat.body import ChatBody
from cantata.api.responses.body import (
    CallItem,
    CallOutputItem,
    InputItem,
    ItemReference,
    MessageItem,
    NamedSchemaFormat,
    OfferedFunction,
    ReasoningItem,
    ResponsesBody,
    SentImage,
)
from cantata.api.responses.objects import OutputCall, OutputItem, OutputMessage
from cantata.contract.data.errors import InvalidRequest

ChatMessage = dict[str, Any]
"""As POST /v1/chat/completions takes it."""
FindItem = Callable[[str, str], OutputItem]
"""The kept item of an id; with the field that names it, for errors."""
_FIELDS = (
    ("messages", "input"),
    ("response_format.json_schema", "text.format"),
    ("response_format", "text.format"),
    ("max_completion_tokens", "max_output_tokens"),
    ("reasoning_effort", "reasoning.effort"),
    ("tool_choice.function", "tool_choice"),
    ("logprobs", "include"),
)
"""Fields of chat completions, and what they are here."""
_PLACES = re.compile(r"messages(\[\d+\][\w.\[\]]*)?")


def list_messages(body: ResponsesBody, find_item: FindItem) -> list[ChatMessage]:
    """The input as messages. A call joins the message before it if that is an answer's. Raises
    ResponseNotFound: an item that is referred to is not kept."""
    if isinstance(body.input, str):
        return [{"role": "user", "content": body.input}]
    messages = list[ChatMessage]()
    for place, item in enumerate(body.input):
        if isinstance(item, ItemReference):
            _add_output(messages, find_item(item.id, f"input[{place}].id"))
        else:
            _add_item(messages, item)
    return messages


def _add_item(messages: list[ChatMessage], item: InputItem) -> None:
    match item:
        case MessageItem():
            messages.append({"role": item.role, "content": _write_content(item)})
        case CallItem():
            _add_call(messages, item.call_id, item.name, item.arguments)
        case CallOutputItem():
            output = item.output
            text = output if isinstance(output, str) else "".join(part.text for part in output)
            messages.append({"role": "tool", "tool_call_id": item.call_id, "content": text})
        case ReasoningItem():
            pass


def _add_call(messages: list[ChatMessage], call_id: str, name: str, arguments: str) -> None:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    messages[-1].setdefault("tool_calls", []).append(call)


def _write_content(item: MessageItem) -> str | list[dict[str, Any]]:
    if isinstance(item.content, str):
        return item.content
    return [
        {"type": "image_url", "image_url": {"url": part.image_url}}
        if isinstance(part, SentImage)
        else {"type": "text", "text": part.text}
        for part in item.content
    ]


def list_answer(output: Sequence[OutputItem]) -> list[ChatMessage]:
    """A response's output as messages of a conversation that goes on."""
    messages = list[ChatMessage]()
    for item in output:
        _add_output(messages, item)
    return messages


def _add_output(messages: list[ChatMessage], item: OutputItem) -> None:
    match item:
        case OutputMessage():
            text = "".join(part.text for part in item.content)
            messages.append({"role": "assistant", "content": text})
        case OutputCall():
            _add_call(messages, item.call_id, item.name, item.arguments)


def make_chat_body(
    body: ResponsesBody, messages: Sequence[ChatMessage], *, can_think: bool
) -> ChatBody:
    """The request to chat completions.

    Args:
        messages: the conversation up to its end, without instructions.
        can_think: the model can think in words before it answers; it does if effort is asked for.

    Raises:
        InvalidRequest: the conversation is too long.
    """
    first = [] if body.instructions is None else [{"role": "system", "content": body.instructions}]
    fields = {
        "messages": [*first, *messages],
        "model": body.model,
        "tools": [_write_tool(tool) for tool in body.tools] or None,
        "tool_choice": _write_choice(body),
        "parallel_tool_calls": body.parallel_tool_calls,
        "response_format": _write_format(body),
        "reasoning_effort": body.reasoning.effort,
        "chat_template_kwargs": {"enable_thinking": can_think and body.reasoning.asks_for_some},
        "max_completion_tokens": body.max_output_tokens,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "logprobs": body.logprobs,
        "top_logprobs": body.top_logprobs if body.logprobs else None,
    }
    try:
        return ChatBody.model_validate(fields)
    except ValidationError as error:
        fault = error.errors()[0]
        where = _rename(".".join(str(part) for part in fault["loc"]))
        raise InvalidRequest(f"{where}: {fault['msg']}", where) from None


def _write_tool(tool: OfferedFunction) -> dict[str, Any]:
    return {"type": "function", "function": tool.model_dump(exclude={"type"}, exclude_none=True)}


def _write_choice(body: ResponsesBody) -> str | dict[str, Any]:
    if isinstance(body.tool_choice, str):
        return body.tool_choice
    return {"type": "function", "function": {"name": body.tool_choice.name}}


def _write_format(body: ResponsesBody) -> dict[str, Any] | None:
    match body.text.format:
        case None:
            return None
        case NamedSchemaFormat() as wanted:
            schema = wanted.model_dump(by_alias=True, exclude={"type"})
            return {"type": "json_schema", "json_schema": schema}
        case wanted:
            return {"type": wanted.type}


@contextmanager
def rename_error_fields() -> Iterator[None]:
    """Errors of chat completions name the fields of this API."""
    try:
        yield
    except InvalidRequest as error:
        param = None if error.param is None else _rename(error.param)
        message = error.message
        if error.param is not None and param is not None:
            message = _PLACES.sub("input", message).replace(error.param, param)
        raise type(error)(message, param) from None


def _rename(name: str) -> str:
    for theirs, ours in _FIELDS:
        if theirs == "messages" and name.startswith(theirs):
            return ours  # the places differ: instructions and earlier responses come first
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name
