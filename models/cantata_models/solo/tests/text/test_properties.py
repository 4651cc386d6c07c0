"""Any Unicode string gives well-formed sentences or TextError."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cantata_models.solo.text import Sentence, TextError, phonemize
from cantata_models.solo.text.folding import fold
from cantata_models.solo.text.phones import PHONES, SIL

FRAGMENTS = (
    "Dr.", "St.", "p.m.", "U.S.", "$5", "-$1.50", "3:05", "1/2", "km/h", "http://", "a.com",
    "World", "War", "II", "Henry", "5%", "1st", "-", "—", "...", "e.g.", "'s", "McX", "GPUs",
    "No.", "Mar", "5", "2024", "1,234", "²", "½", "°C", "\n", "\n\n", "&amp;", "<b>", ":)",
    "[[AA]]", "😀", "é", "e\u0301", "日本", "x" * 70, "9" * 50, "\ud800", "\x00",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map("".join),
    st.lists(st.sampled_from(FRAGMENTS), max_size=15).map(" ".join),
)


def check(text: str, sentence: Sentence, max_phones: int) -> None:
    phones, starts, index = sentence.phones, sentence.word_starts, sentence.word_index
    assert 3 <= len(phones) <= max_phones
    assert len(phones) == len(starts) == len(index)
    assert phones[0] == phones[-1] == SIL
    assert all(phone in PHONES for phone, word in zip(phones, index, strict=True) if word >= 0)
    assert all(phone == SIL for phone, word in zip(phones, index, strict=True) if word < 0)
    assert sum(starts) == len(sentence.words)
    for number, word in enumerate(sentence.words):
        places = [place for place, value in enumerate(index) if value == number]
        assert tuple(phones[place] for place in places) == word.phones
        assert [place for place in places if starts[place]] == places[:1] != []
        assert text[word.start : word.end] == word.text != ""


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, max_phones=st.sampled_from([3, 7, 40, 200]))
def test_any_text_gives_sentences_or_text_error(text: str, max_phones: int) -> None:
    try:
        sentences = phonemize(text, max_phones=max_phones)
    except TextError as error:
        assert "accepted" in str(error) or "valid phones" in str(error)  # noqa: PT017
        return
    assert sentences
    for sentence in sentences:
        check(text, sentence, max_phones)
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
