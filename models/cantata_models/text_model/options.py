"""How a text model's answers are read: the deployment's `options`, and vLLM's parsers that a chat
template calls for where they say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from cantata.contract.data.errors import ConfigError

_TOOLS = (
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3_json"),
    ("<|tool_calls_section_begin|>", "kimi_k2"),
    ("<start_function_call>", "functiongemma"),
    ("<|tool_list_start|>", "lfm2"),
    ("functools[", "phi4_mini_json"),
    ("<arg_key>", "glm45"),
    ("<function=", "qwen3_coder"),
    ("<|tool_call|>", "granite"),
    ("<tool_call>", "hermes"),
    ('{"name": function name, "parameters":', "llama3_json"),
)
"""What a template writes around a call, and vLLM's parser of that form; the more specific first."""
_THOUGHTS = (("qwen3", "qwen3"), ("granite", "granite"), ("olmo3", "olmo3"))
"""How a model's type begins, and vLLM's parser of its thoughts."""
_THOUGHT_MARK, _USUAL = "<think>", "deepseek_r1"


class TextModelOptions(BaseModel):
    """How answers are read. A parser's name is one of vLLM's; None: by the chat template, or none;
    `off`: none."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool_parser: str | None = None
    """Finds calls of tools."""
    reasoning_parser: str | None = None
    """Finds the thought before an answer."""


def read_options(values: Mapping[str, Any]) -> TextModelOptions:
    """Check them. Raises ConfigError: names what is wrong."""
    try:
        return TextModelOptions.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        valid = sorted(TextModelOptions.model_fields)
        raise ConfigError(f"options.{where}: {first['msg']}; valid keys: {valid}") from error


def guess_tool_parser(template: str) -> str | None:
    """Return the parser for a template that lays out tools; None: it knows none."""
    if "tools" not in template:
        return None
    return next((parser for mark, parser in _TOOLS if mark in template), None)


def guess_reasoning_parser(template: str, model_type: str) -> str | None:
    """Return the parser for a template with thoughts; None: it knows none."""
    if _THOUGHT_MARK not in template:
        return None
    named = (parser for begin, parser in _THOUGHTS if model_type.startswith(begin))
    return next(named, _USUAL)
