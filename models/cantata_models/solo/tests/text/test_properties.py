"""Any Unicode string gives well-formed sentences or TextError."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantata_layers.english.lexicon import PHONES
from cantata_layers.english.tests.fragments import TEXTS
from cantata_models.solo.text import Sentence, TextError, phonemize
from cantata_models.solo.text.sentences import MAX_PHONES
from cantata_models.solo.text.tokens import SIL


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


@settings(max_examples=100, deadline=None)
@given(value=st.integers(min_value=0, max_value=10**15 - 1))
def test_every_whole_number_is_said_the_same_with_and_without_commas(value: int) -> None:
    plain, grouped = phonemize(f"{value} km"), phonemize(f"{value:,} km")
    assert [s.phones for s in plain] == [s.phones for s in grouped]


@pytest.mark.thorough(every=4)
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
