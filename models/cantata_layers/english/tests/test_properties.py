"""Any Unicode string is read, with every word's place in it, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import example, given, settings

from cantata_layers.english.folding import fold
from cantata_layers.english.normalize import RULES, normalize
from cantata_layers.english.tests.fragments import TEXTS
from cantata_layers.english.tokens import Spoken


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_folding_keeps_an_origin_for_each_character(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.origin)
    assert list(folded.origin) == sorted(folded.origin)
    for place in range(len(folded.text)):
        start, end = folded.span(place, place + 1)
        assert 0 <= start < end <= len(text)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
@example("°C" + "x" * 70)
@example("°Fiii")
def test_what_is_spoken_is_said_alike_when_normalized_again(text: str) -> None:
    words = [item.word for item in spoken_words(text)]
    plain = " ".join(word for word in words if word.isascii() and word.isalpha() and word.islower())
    again = [item.word for item in spoken_words(plain)]
    assert [item.word for item in spoken_words(" ".join(again))] == again


def spoken_words(text: str) -> list[Spoken]:
    return [item for item in normalize(text) if isinstance(item, Spoken)]


def repetitions(tree: Iterable[tuple[Any, Any]], depth: int = 0) -> Iterator[tuple[int, bool]]:
    """Yields each unbounded repetition's depth, and whether its body is a single character."""
    for operation, argument in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            _, most, body = argument
            if most == _parser.MAXREPEAT:
                yield depth, len(body) == 1 and str(body[0][0]) in ("IN", "LITERAL", "ANY")
            yield from repetitions(body, depth + (most == _parser.MAXREPEAT))
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from repetitions(branch, depth)
        elif name == "SUBPATTERN":
            yield from repetitions(argument[3], depth)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from repetitions(argument[1], depth)


@pytest.mark.parametrize("place", range(len(RULES)))
def test_no_rule_can_backtrack_without_bound(place: int) -> None:
    pattern = RULES[place].pattern
    found = list(repetitions(_parser.parse(pattern.pattern, pattern.flags)))
    assert all(depth == 0 and simple for depth, simple in found), pattern.pattern
    # Two in a row already take quadratic time on a run of characters that matches both.
    assert len(found) <= 2, pattern.pattern
