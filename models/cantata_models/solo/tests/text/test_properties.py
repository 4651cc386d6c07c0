# ruff: noqa: RUF001 (characters that look alike are meant)
"""Any Unicode string gives well-formed sentences or TextError."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cantata_models.solo.text import Sentence, TextError, phonemize
from cantata_models.solo.text.folding import fold
from cantata_models.solo.text.normalize import RULES, normalize
from cantata_models.solo.text.sentences import MAX_PHONES
from cantata_models.solo.text.tokens import PHONES, SIL, Spoken

FRAGMENTS = (
    "Dr.", "St.", "p.m.", "U.S.", "$5", "-$1.50", "3:05", "1/2", "km/h", "http://", "a.com",
    "World", "War", "II", "Henry", "5%", "1st", "-", "—", "...", "e.g.", "'s", "McX", "GPUs",
    "No.", "Mar", "5", "2024", "1,234", "²", "½", "°C", "\n", "\n\n", "&amp;", "<b>", ":)",
    "[[AA]]", "[[/kæt/]]", "[[kæt]]", "[[ɑ̃]]", ":[", "α", "αβ", "Ω", "㎑", "ﬁ", "℡", "⒈", "３",
    "\u202f", "3,5", "1.234,5", "XIV", "iii", "part ", "pp. ", "Mon", "Jan", "–", '12"', "6'", "x",
    "A320-200", "#1234-5678", "code is 482913", "PIN 12345", "f(x)", "arr[0]", "a[i][j]", "{", "}",
    "\\frac{1}{2}", "\\n", "\\\\n", "\\alpha", "0x1F", "#FF5733", "**", "^{", "_", "/", "12/05",
    "4.5/5", "1/3rd", "Psalm 23:4", "1 Cor 13:4", "Salem, MA", "IL 62704", "PO Box 1", "no. 5",
    "mcg", "⁻³", "Rs. 5", "UPS", "NGOs", "NaCl", "40°42'N", "9.30am", "15-Mar-2024", "830s", "(s)",
    "--flag", "::", "shed a tear", "5'10½\"", "2 ½", "1/2 kg", "kg·m⁻³", "W/(m²·K)", "mg/kg/day",
    "10⁸ m", "737-800", "ISO 9001:2015", "is your code", "ending in 4242", "DE89 3704 0044", "x2",
    "1:10,000", "a ratio of", "USD 5-10", "tokens/s", "/1M tokens", "5kg-10kg", "UTC-5", "500-1000",
    "~/a", "C:\\a", "record", "to", "@a_b", "401(k)", "v1.0-beta.2",
    "😀", "é", "e\u0301", "日本", "x" * 70, "9" * 50, "\ud800", "\x00",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map(" ".join),
)


def check(text: str, sentence: Sentence, max_phones: int) -> None:
    phones, starts = sentence.phones, sentence.word_starts
    assert 3 <= len(phones) <= max_phones
    assert len(phones) == len(starts)
    assert phones[0] == phones[-1] == SIL
    assert not any(start for phone, start in zip(phones, starts, strict=True) if phone == SIL)
    spoken = [pair for pair in zip(phones, starts, strict=True) if pair[0] != SIL]
    assert all(phone in PHONES for phone, _ in spoken)
    assert spoken == [
        (phone, place == 0) for word in sentence.words for place, phone in enumerate(word.phones)
    ]
    for word in sentence.words:
        assert text[word.start : word.end] == word.text != ""


def check_spans(spans: list[tuple[int, int]]) -> None:
    """Checks that neighbouring spans are equal or disjoint, and in order; so any two are."""
    for before, after in pairwise(spans):
        assert before == after or before[1] <= after[0]


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, max_phones=st.sampled_from([3, 7, 40, 200]))
def test_any_text_gives_sentences_or_text_error(text: str, max_phones: int) -> None:
    try:
        sentences = phonemize(text, max_phones=max_phones)
    except TextError as error:
        assert "accepted" in str(error) or "valid" in str(error)  # noqa: PT017
        return
    assert sentences
    for sentence in sentences:
        check(text, sentence, max_phones)
    check_spans([(word.start, word.end) for sentence in sentences for word in sentence.words])
    starts = [word.start for sentence in sentences for word in sentence.words]
    assert starts == sorted(starts)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_phonemize_is_deterministic(text: str) -> None:
    def outcome() -> tuple[Sentence, ...] | str:
        try:
            return phonemize(text)
        except TextError as error:
            return str(error)

    assert outcome() == outcome()


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_folding_keeps_an_origin_for_each_character(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.origin)
    assert list(folded.origin) == sorted(folded.origin)
    for place in range(len(folded.text)):
        start, end = folded.span(place, place + 1)
        assert 0 <= start < end <= len(text)


@settings(max_examples=100, deadline=None)
@given(value=st.integers(min_value=0, max_value=10**15 - 1))
def test_every_whole_number_is_said_the_same_with_and_without_commas(value: int) -> None:
    plain, grouped = phonemize(f"{value} km"), phonemize(f"{value:,} km")
    assert [s.phones for s in plain] == [s.phones for s in grouped]


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
def test_folding_twice_is_folding_once(text: str) -> None:
    once = fold(text).text
    assert fold(once).text == once


@settings(max_examples=200, deadline=None)
@given(text=TEXTS)
@example("°C" + "x" * 70)
@example("°Fiii")
def test_what_is_spoken_is_said_alike_when_normalised_again(text: str) -> None:
    words = [item.word for item in normalize_or_nothing(text)]
    plain = " ".join(word for word in words if word.isascii() and word.isalpha() and word.islower())
    again = [item.word for item in normalize_or_nothing(plain)]
    assert [item.word for item in normalize_or_nothing(" ".join(again))] == again


def normalize_or_nothing(text: str) -> list[Spoken]:
    try:
        return [item for item in normalize(text) if isinstance(item, Spoken)]
    except TextError:
        return []


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


@pytest.mark.parametrize(
    "unit",
    ["a", "1,", "½", "㎑", "U.S. ", "not really ", "\n ", "[[AA"],
)
def test_long_repetitive_text_is_spoken_or_rejected(unit: str) -> None:
    text = (unit * 20_000)[:20_000]
    try:
        sentences = phonemize(text)
    except TextError:
        return
    assert all(len(sentence.phones) <= MAX_PHONES for sentence in sentences)
    assert len(sentences) <= 20_000
