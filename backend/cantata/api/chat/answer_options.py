"""What not every model can do: whether the one that is asked can, and whether it is asked well."""

from __future__ import annotations

from collections.abc import Iterator

from cantata.api.chat.body import ChatBody
from cantata.api.chat.tools import NamedTool
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chat import AnswerOption, JsonFormat
from cantata.contract.data.errors import InvalidRequest

FORMAT = "response_format"


def check_options(model: ChatModel, body: ChatBody) -> JsonFormat | None:
    """What the answer is held to.

    Raises:
        InvalidRequest: the model cannot do it, or fields contradict each other; names the field.
    """
    _check_choice(body)
    for option, field, valid in _list_wanted(body):
        if option not in model.options:
            message = f"{field}: {model.name} does not support it; valid: {valid}"
            raise InvalidRequest(message, field)
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest('top_logprobs needs "logprobs": true', "top_logprobs")
    if body.spoken:
        _check_spoken(body)
    return None if body.response_format is None else body.response_format.read(FORMAT)


def _list_wanted(body: ChatBody) -> Iterator[tuple[AnswerOption, str, str]]:
    """What the request asks for, its field, and what every model takes there."""
    choice = body.choice
    if choice.required or choice.name is not None:
        yield AnswerOption.TOOL_CHOICE, "tool_choice", '"none", "auto"'
    if body.offered and not choice.parallel:
        yield AnswerOption.TOOL_CHOICE, "parallel_tool_calls", "true"
    if body.response_format is not None and body.response_format.type != "text":
        yield AnswerOption.FORMAT, FORMAT, '{"type": "text"}'
    if body.logprobs:
        yield AnswerOption.LOGPROBS, "logprobs", "false"
    if body.logit_bias:
        yield AnswerOption.LOGIT_BIAS, "logit_bias", "{}"
    if body.reasoning_effort not in (None, "none"):
        yield AnswerOption.REASONING_EFFORT, "reasoning_effort", '"none"'


def _check_choice(body: ChatBody) -> None:
    if body.choice.required and not body.tools:
        raise InvalidRequest('tool_choice is "required", but there are no tools', "tool_choice")
    if not isinstance(body.tool_choice, NamedTool):
        return
    names = [tool.function.name for tool in body.tools or ()]
    name = body.tool_choice.function.name
    if name not in names:
        raise InvalidRequest(
            f"tool_choice.function.name: tools has no {name!r}; it has: {', '.join(names)}",
            "tool_choice.function.name",
        )


def _check_spoken(body: ChatBody) -> None:
    """One answer is spoken, and its sound has no tokens to tell of."""
    if body.n > 1:
        raise InvalidRequest("n: only one answer can be spoken; valid: 1", "n")
    if body.logprobs:
        raise InvalidRequest("logprobs: a spoken answer has none; valid: false", "logprobs")
