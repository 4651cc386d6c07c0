"""Calls in an answer: what is found does not depend on how its text is cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest

from cantata.contract.data.chat import CallArguments, CallStarted
from cantata.contract.model.conversation import Written
from cantata_layers.omni.tools import ToolCallReader

ARGUMENTS = '{"city": "Ulm \\"}\\" {[", "days": [1, {"at": null}], "x": "\\u00fc</tool_call>"}'
ONE = f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
EMPTY = '<tool_call>{"name":"now","arguments":{}}</tool_call>'
OTHER_ORDER = '<tool_call>\n{"arguments": {"a": 1}, "name": "turned"}\n</tool_call>'
Found = list[str | tuple[str, str]]
"""Words, and calls as names with arguments."""
ANSWERS: dict[str, tuple[str, Found]] = {
    "words": ("2 < 3, <b>, <tool, </tool_call> <tool_", ["2 < 3, <b>, <tool, </tool_call> <tool_"]),
    "call": (ONE, [("weather", ARGUMENTS)]),
    "words_first": (f"Let me see.\n{ONE}", ["Let me see.\n", ("weather", ARGUMENTS)]),
    "two_calls": (f"{ONE}\n{EMPTY}\n", [("weather", ARGUMENTS), ("now", "{}")]),
    "words_between": (f"{EMPTY}\n So\n{EMPTY}", [("now", "{}"), "So\n", ("now", "{}")]),
    "other_order": (OTHER_ORDER, [("turned", '{"a": 1}')]),
    "name_with_marks": (
        '<tool_call>{"name": "a\\"b", "arguments": {"a": 1}, "more": 2}</tool_call>.',
        [('a"b', '{"a": 1}'), "."],
    ),
    "no_json": ("<tool_call>weather(Ulm)</tool_call>!", ["<tool_call>weather(Ulm)</tool_call>!"]),
    "no_object": (
        '<tool_call>{"name": "f", "arguments": "x"}</tool_call>',
        ['<tool_call>{"name": "f", "arguments": "x"}</tool_call>'],
    ),
    "wrong_escape": (
        '<tool_call>{"name": "\\q", "arguments": {}}</tool_call>',
        ['<tool_call>{"name": "\\q", "arguments": {}}</tool_call>'],
    ),
    "closed_in_its_name": (
        '<tool_call>{"name": "</tool_call>", "arguments": {}}',
        ['<tool_call>{"name": "</tool_call>", "arguments": {}}'],
    ),
    "cut_in_arguments": ('<tool_call>{"name": "f", "arguments": {"a": [1', [("f", '{"a": [1')]),
    "cut_behind_arguments": ('<tool_call>{"name": "f", "arguments": {}}\n</too', [("f", "{}")]),
    "cut_in_name": ('Well, <tool_call>{"name": "f', ['Well, <tool_call>{"name": "f']),
}


def read(pieces: Sequence[str]) -> list[Written]:
    reader = ToolCallReader()
    return [found for piece in pieces for found in reader.read(piece)] + reader.end()


def put_together(found: Sequence[Written]) -> Found:
    result: Found = []
    for one in found:
        match one:
            case CallStarted(name):
                result.append((name, ""))
            case CallArguments(text):
                assert text
                called = result[-1]
                assert isinstance(called, tuple)
                result[-1] = (called[0], called[1] + text)
            case str(words):
                assert words
                before = result.pop() if result and isinstance(result[-1], str) else ""
                result.append(f"{before}{words}")
    return result


by_answer = pytest.mark.parametrize(("text", "expected"), ANSWERS.values(), ids=ANSWERS)


@by_answer
def test_whole_and_character_by_character(text: str, expected: Found) -> None:
    assert put_together(read([text])) == expected
    assert put_together(read(list(text))) == expected


@by_answer
def test_cut_anywhere(text: str, expected: Found) -> None:
    for first, second in combinations(range(len(text) + 1), 2):
        pieces = [text[:first], text[first:second], text[second:]]
        assert put_together(read(pieces)) == expected, pieces


def test_a_call_begins_with_its_name_and_its_arguments_leave_as_they_are_written() -> None:
    reader = ToolCallReader()
    assert reader.read('<tool_call>{"name": "f", "arguments": ') == []
    assert reader.read("{") == [CallStarted("f"), CallArguments("{")]
    assert reader.read('"a": ') == [CallArguments('"a": ')]
    assert reader.read("1}}</tool_call>") == [CallArguments("1}")]
    assert reader.read("Done <") == ["Done "]
    assert reader.end() == ["<"]
