"""An answer's tokens as its thought, its words and its calls, by vLLM's own parsers."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import (
    CallArguments,
    CallStarted,
    ChatRequest,
    JsonFormat,
    Thought,
    ToolChoice,
)
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.model.conversation import Written
from cantata_layers.token_text import TokenReader
from cantata_models.text_model.grammar import JSON, MAX_WHITESPACE, TAG, Grammar
from cantata_models.text_model.tool_tags import share_beginnings

ANY_OBJECT = '{"type": "object"}'


class VllmAnswerParser:
    """Implements `contract.model.conversation.AnswerParser` over one of vLLM's parsers. `prompt`:
    [P] tokens."""

    def __init__(
        self, parser: Any, request: Any, reader: TokenReader, prompt: NDArray[np.int32]
    ) -> None:
        self._parser, self._request, self._reader = parser, request, reader
        self._prompt: list[int] = prompt.tolist()
        self.thinking = False

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Sequence[Thought | Written]:
        """Return the content of [T] more tokens.

        WHY one at a time: what vLLM's parsers say of several depends on where they are cut.
        """
        found: list[Thought | Written] = []
        for place in range(len(tokens)):
            token = tokens[place : place + 1]
            found += self._parse_token(self._reader.read(token), token.tolist(), last=False)
        return [*found, *self._parse_token(self._reader.end(), [], last=True)] if last else found

    def _parse_token(
        self, text: str, token: list[int], *, last: bool
    ) -> Iterator[Thought | Written]:
        delta = self._parser.parse_delta(text, token, self._request, self._prompt, finished=last)
        if delta is not None:
            self.thinking = bool(delta.reasoning) and not delta.content
            yield from _iterate_pieces(delta)


class PlainAnswerParser:
    """Implements `AnswerParser` for an answer of words alone."""

    thinking = False

    def __init__(self, reader: TokenReader) -> None:
        self._reader = reader

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Sequence[Thought | Written]:
        """Return the words of [T] more tokens."""
        return (self._reader.read(tokens) + (self._reader.end() if last else ""),)


class VllmParsers:
    """Makes the parsers of one checkpoint's answers.

    Args:
        tools: vLLM's name of the parser that finds calls; None: there are none.
        thoughts: the same for thoughts.

    Raises:
        ConfigError: vLLM has none of that name, or it does not fit the tokenizer.
    """

    def __init__(self, tokenizer: Any, tools: str | None, thoughts: str | None) -> None:
        with _import_vllm():
            from vllm.parser import ParserManager
            from vllm.tool_parsers.tool_strict_level import ToolStrictLevel

        self._strict_level = ToolStrictLevel
        self._tokenizer = tokenizer
        try:
            self._kind: Any = ParserManager.get_parser(
                tools, thoughts, enable_auto_tools=tools is not None, tokenizer=tokenizer
            )
        except (TypeError, KeyError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"options: tool_parser {tools!r} and reasoning_parser {thoughts!r}: {error}"
            ) from error

    def open(
        self, request: ChatRequest, template_options: Mapping[str, Any], prompt: NDArray[np.int32]
    ) -> VllmAnswerParser:
        """Return the parser of one answer.

        Args:
            template_options: what the chat template was given besides.
            prompt: [P] tokens.
        """
        parser, asked = self._begin(request, template_options)
        parser.set_prompt_token_ids(prompt.tolist())
        words = self._tokenizer.backend_tokenizer
        reader = TokenReader(words, skip_special_tokens=asked.skip_special_tokens)
        return VllmAnswerParser(parser, asked, reader, prompt)

    def constrain(
        self, request: ChatRequest, template_options: Mapping[str, Any]
    ) -> Grammar | None:
        """Return what vLLM would hold the answer to; None: nothing. Raises InvalidRequest: vLLM
        makes no grammar of its tools."""
        param = "tools" if request.tools else "response_format"
        try:
            _, asked = self._begin(request, template_options)
            held = asked.extract_structured_outputs()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidRequest(f"{param}: {error}", param) from error
        if held is None:
            return None
        if held.structural_tag is not None:
            tag = share_beginnings(json.loads(held.structural_tag))
            _limit_whitespace(tag)
            return Grammar(TAG, json.dumps(tag), param)
        schema = held.json if held.json is not None else ANY_OBJECT
        return Grammar(JSON, schema if isinstance(schema, str) else json.dumps(schema), param)

    def thought_ends(
        self, request: ChatRequest, template_options: Mapping[str, Any], prompt: NDArray[np.int32]
    ) -> tuple[int, ...]:
        """Return the tokens that end the thought in which an answer begins; empty: it begins with
        words."""
        parser, _ = self._begin(request, template_options)
        thoughts = parser.reasoning_parser
        if thoughts is None or parser.is_reasoning_end(prompt.tolist()):
            return ()
        several = getattr(thoughts, "reasoning_end_token_ids", None)
        one = getattr(thoughts, "end_token_id", None)
        return tuple(several or ()) or (() if one is None else (one,))

    def _begin(self, request: ChatRequest, template_options: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return vLLM's parser, and its form of the request as the parser adjusts it."""
        asked = _to_vllm_request(request)
        options = dict(template_options)
        parser = self._kind(self._tokenizer, asked.tools, chat_template_kwargs=options)
        if request.tool_choice.name is not None or request.tool_choice.required:
            # A call that must be made follows its tool's schema, be that strict or not.
            parser.tool_strict_level = max(self._strict_level)
        return parser, parser.adjust_request(asked)


def _limit_whitespace(tag: Any) -> None:
    """Limit whitespace in all JSON of a structural tag."""
    if isinstance(tag, dict):
        if tag.get("type") == "json_schema" and "max_whitespace_cnt" in tag:
            tag["max_whitespace_cnt"] = MAX_WHITESPACE
        for key, inner in tag.items():
            if key != "json_schema":
                _limit_whitespace(inner)
    elif isinstance(tag, list):
        for inner in tag:
            _limit_whitespace(inner)


def make_format(wanted: JsonFormat) -> Grammar:
    """Return the grammar of an answer that is JSON."""
    return Grammar(JSON, wanted.schema or ANY_OBJECT, "response_format")


@contextmanager
def _import_vllm() -> Iterator[None]:
    """Keep vLLM's hands off the process in which it only parses: its log, and the compiler, which
    takes as long to import as half of torch."""
    before = dict(os.environ)
    os.environ.setdefault("VLLM_CONFIGURE_LOGGING", "0")
    os.environ["TORCHDYNAMO_DISABLE"] = "1"
    # It warns of what does not matter to a parser, such as a CPU without Triton.
    logging.getLogger("vllm").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _to_vllm_request(request: ChatRequest) -> Any:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    tools = [json.loads(tool) for tool in request.tools]
    wanted = request.format
    format_body: dict[str, Any] | None = None
    if wanted is not None and wanted.schema is None:
        format_body = {"type": "json_object"}
    elif wanted is not None and wanted.schema is not None:
        schema = {"name": "answer", "schema": json.loads(wanted.schema)}
        format_body = {"type": "json_schema", "json_schema": schema}
    return ChatCompletionRequest(
        messages=[{"role": "user", "content": ""}],
        tools=tools or None,
        tool_choice=_to_vllm_choice(request.tool_choice) if tools else "none",
        parallel_tool_calls=request.tool_choice.parallel,
        response_format=format_body,
    )


def _to_vllm_choice(choice: ToolChoice) -> Any:
    if choice.name is not None:
        return {"type": "function", "function": {"name": choice.name}}
    return "required" if choice.required else "auto"


def _iterate_pieces(delta: Any) -> Iterator[Thought | Written]:
    if delta.reasoning:
        yield Thought(delta.reasoning, 0)
    if delta.content:
        yield delta.content
    for call in delta.tool_calls or ():
        if call.function is None:
            continue
        if call.function.name:
            yield CallStarted(call.function.name)
        if call.function.arguments:
            yield CallArguments(call.function.arguments)
