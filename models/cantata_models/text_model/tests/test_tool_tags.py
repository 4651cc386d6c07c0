"""Many tools to choose from: their grammar is small, and accepts what it did."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import xgrammar
from xgrammar.testing import _is_grammar_accept_string

from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart, ToolChoice
from cantata.contract.data.errors import InvalidRequest
from cantata_models.text_model.answer_parser import VllmParsers
from cantata_models.text_model.chat_builder import TextModelBuilder
from cantata_models.text_model.random_checkpoint import write_checkpoint
from cantata_models.text_model.tool_tags import share_beginnings

pytestmark = pytest.mark.integration

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
MESSAGES = (Message(Role.USER, (TextPart("Which?"),)),)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> TextModelBuilder:
    return TextModelBuilder(write_checkpoint(tmp_path_factory.mktemp("text"), "llama"))


def asking(count: int) -> ChatRequest:
    """A request that must call one of so many tools."""
    functions = [{"name": f"tool_{n}", "parameters": PARAMETERS} for n in range(count)]
    tools = [json.dumps({"type": "function", "function": one}) for one in functions]
    return ChatRequest(MESSAGES, tools=tuple(tools), tool_choice=ToolChoice(required=True))


def vllms_tag(builder: TextModelBuilder, count: int) -> Any:
    """The structural tag as vLLM writes it."""
    parsers = builder._parsers
    assert isinstance(parsers, VllmParsers)
    _, asked = parsers._begin(asking(count), {})
    return json.loads(asked.extract_structured_outputs().structural_tag)


def grammar(tag: Any) -> xgrammar.Grammar:
    return xgrammar.Grammar.from_structural_tag(json.dumps(tag))


@pytest.mark.thorough
def test_a_hundred_tools_can_be_required(builder: TextModelBuilder) -> None:
    """Each with its own parameters; without a shared beginning they are refused."""
    compile_grammar = builder.prepare(asking(100))
    assert compile_grammar is not None
    compile_grammar()
    assert builder.prepare(asking(100)) is None, "it is kept"


def test_and_without_a_shared_beginning_they_cannot(
    builder: TextModelBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cantata_models.text_model.answer_parser.share_beginnings", lambda tag: tag)
    compile_grammar = builder.prepare(asking(101))
    assert compile_grammar is not None
    with pytest.raises(InvalidRequest, match="fewer tools"):
        compile_grammar()


@pytest.mark.parametrize("count", [1, 2, 12])
def test_the_same_is_accepted(builder: TextModelBuilder, count: int) -> None:
    tag = vllms_tag(builder, count)
    ours, theirs = grammar(share_beginnings(tag)), grammar(tag)
    arguments = ['{"city": "Rome"}', '{"city": "Rome", "days": 3}', "{}", '{"days": 3}', "{"]
    names = [f"tool_{n}" for n in range(count + 2)] + ["tool_", "too", ""]
    outsides = [
        ("<tool_call>\n", "\n</tool_call>"),
        ("<tool_call>", "</tool_call>"),
        ("<tool_call>", "\n</tool_call>"),
        ("", ""),
    ]
    accepted = 0
    for name, given, (begin, end) in product(names, arguments, outsides):
        call = f'{begin}{{"name": "{name}", "arguments": {given}}}{end}'
        for text in (call, call * 2, f"{call} and", f"Well. {call}"):
            verdict = _is_grammar_accept_string(theirs, text)
            assert _is_grammar_accept_string(ours, text) == verdict, text
            accepted += verdict
    assert accepted == count * 2 * 2 * 2  # both ways of writing it, two sets of arguments, twice


def test_tags_that_do_not_begin_alike_stay_as_they_are() -> None:
    tags = [
        {"type": "tag", "begin": begin, "content": {"type": "any_text"}, "end": end}
        for begin, end in (("<a>", "</a>"), ("<b>", "</b>"), ("x", "</a>"), ("<c", "</c>"))
    ]
    form = {"type": "tags_with_separator", "tags": tags, "separator": ""}
    assert share_beginnings(form)["tags"] == [tags[0], tags[2], tags[1], tags[3]]


def test_a_clients_schema_is_not_touched() -> None:
    schema = {"type": "tags_with_separator", "tags": [{"begin": "ab"}, {"begin": "ac"}]}
    form = {"type": "json_schema", "json_schema": schema}
    assert share_beginnings(form) == form


def test_names_that_begin_with_one_another(builder: TextModelBuilder, tmp_path: Path) -> None:
    functions = [{"name": name, "parameters": PARAMETERS} for name in ("ring", "ring_twice")]
    tools = tuple(json.dumps({"type": "function", "function": one}) for one in functions)
    request = ChatRequest(MESSAGES, tools=tools, tool_choice=ToolChoice(required=True))
    parsers = builder._parsers
    assert isinstance(parsers, VllmParsers)
    held = parsers.constrain(request, {})
    assert held is not None
    ours = grammar(json.loads(held.text))
    for name, right in (("ring", True), ("ring_twice", True), ("ring_", False)):
        call = f'<tool_call>{{"name": "{name}", "arguments": {{"city": "Rome"}}}}</tool_call>'
        assert _is_grammar_accept_string(ours, call) is right
