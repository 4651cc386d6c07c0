# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Texts to phones: those of the package, with every word's place in the client's text."""

from __future__ import annotations

import time

import pytest
from hibari import Hibari
from hibari.tts import MAX_PHONEMES
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.misaki.g2p import EnglishG2P, load_g2p
from cantata_layers.misaki.phones import read_phones, vocabulary
from cantata_layers.misaki.sentences import PhonemizedSentence

LETTERS = {number: letter for letter, number in vocabulary().items()}
ORDINARY = (
    "Hello there.",
    "Dr. Smith paid $9.99 on March 3rd, 2024, at 7:30 pm.",
    "“Don't,” she said; then she left — quickly. Nobody followed!",
    "It's 25 km to St. Paul's, i.e. half an hour.",
    "Section 4.2 covers NASA, the IRS and e-mail.",
)


@pytest.fixture(scope="module")
def reader() -> EnglishG2P:
    return load_g2p(british=False)


def spelled(sentence: PhonemizedSentence) -> str:
    assert sentence.phones[0] == sentence.phones[-1] == 0
    return "".join(LETTERS[number] for number in sentence.phones[1:-1])


def said_words(text: str, sentences: tuple[PhonemizedSentence, ...]) -> list[tuple[str, str]]:
    """Each word as it is written and as it is said."""
    return [
        (
            text[word.span.start : word.span.end],
            "".join(LETTERS[number] for number in sentence.phones[word.start : word.end]),
        )
        for sentence in sentences
        for word in sentence.words
    ]


@pytest.mark.parametrize("british", [False, True])
@pytest.mark.parametrize("text", ORDINARY)
def test_phones_are_the_packages(text: str, british: bool) -> None:
    front = Hibari(g2p=load_g2p(british)._g2p)
    expected = [front.ids(phonemes) for phonemes in front.phonemize(text)]
    assert [list(one.phones) for one in load_g2p(british).read(text)] == expected


def test_words_have_their_places(reader: EnglishG2P) -> None:
    text = "Dr. Smith paid $12, twice."
    assert said_words(text, reader.read(text)) == [
        ("Dr", "dˈɑktəɹ"),
        ("Smith", "smˈɪθ"),
        ("paid", "pˈAd"),
        ("$12", "twˈɛlv dˈɑləɹz"),
        ("twice", "twˈIs"),
    ]


def test_marks_around_a_word_are_not_its_place(reader: EnglishG2P) -> None:
    text = "'Hello,' (she) said, \"isn't it?\""
    written = [written for written, _ in said_words(text, reader.read(text))]
    assert written == ["Hello", "she", "said", "isn't", "it"]


def test_a_text_without_a_full_stop_is_read_in_time(reader: EnglishG2P) -> None:
    """Which grows with its length, not with the square of it."""

    def cpu_s(words: int) -> float:
        begun = time.process_time()
        reader.read("and so it went on " * (words // 5))
        return time.process_time() - begun

    cpu_s(500)
    assert cpu_s(16_000) < 8 * cpu_s(4_000)


def test_several_words_of_one_number_share_its_place(reader: EnglishG2P) -> None:
    text = "Meet at 7:05, or on 2024-03-05."
    spans = [written for written, _ in said_words(text, reader.read(text))]
    assert spans[:2] == ["Meet", "at"]
    assert set(spans[2:]) == {"7:05", "or", "on", "2024-03-05"}


def test_words_of_later_sentences(reader: EnglishG2P) -> None:
    text = "One two.\n\n  Three four!  Five"
    written = [written for written, _ in said_words(text, reader.read(text))]
    assert written == ["One", "two", "Three", "four", "Five"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("həˈloʊ", "həˈlO"),
        ("t͡ʃɜːtʃ", "ʧɜɹʧ"),
        ("ɡreɪt", "ɡɹAt"),
        ("ˈbɒtəl", "ˈbɑtəl"),
        ("hˈIbəɹi", "hˈIbəɹi"),
    ],
)
def test_phones_of_a_client(written: str, said: str, reader: EnglishG2P) -> None:
    text = f"Say [[{written}]] now."
    assert ("[[" + written + "]]", said) in said_words(text, reader.read(text))


def test_phones_in_british(reader: EnglishG2P) -> None:
    said = "".join(LETTERS[number] for number in read_phones("həˈləʊ", british=True))
    assert said == "həˈlQ"


@pytest.mark.parametrize("written", ["", "  ", "k9t", "猫", "ˈ"])
def test_what_is_no_phone_is_refused(written: str, reader: EnglishG2P) -> None:
    with pytest.raises(InvalidRequest, match=r"\[\["):
        reader.read(f"Say [[{written}]] now.")


@pytest.mark.parametrize("text", ["", " ", "...", "—", "🙂", "?!", "\n\n"])
def test_nothing_to_say(text: str, reader: EnglishG2P) -> None:
    assert reader.read(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000,
        "7" * 10_000,
        "word " * 1_000,
        "clause, " * 300,
        "Zorvathkin" * 500,
        "[[kæt]]" * 300,
        f"[[{'kæt' * 500}]]",
        "a-b" * 2_000,
    ],
)
def test_long_texts_are_read_in_parts(text: str, reader: EnglishG2P) -> None:
    sentences = reader.read(text)
    assert sum(len(one.words) for one in sentences) > 0
    for one in sentences:
        assert len(one.phones) <= MAX_PHONEMES + 2
        for word in one.words:
            assert 0 < word.start < word.end < len(one.phones)


def test_a_long_sentence_is_cut_at_a_comma(reader: EnglishG2P) -> None:
    clause = "and the old man walked along the quiet shore until the evening came"
    sentences = reader.read(", ".join([clause] * 9) + ".")
    assert len(sentences) > 1
    assert all(spelled(one).rstrip().endswith((",", ".")) for one in sentences)


PIECES = (
    *(
        "$",
        "£1.5m",
        "5",
        "0",
        "007",
        "1/2",
        "½",
        "3rd",
        "IV",
        "2024",
        "1990s",
        "12:30",
        "7pm",
        "-5",
    ),
    *(":", ".", ",", "%", "°C", "km", "/", "-", "–", "+", "=", "(", ")", "'", "’s", "“", "&", "#1"),
    *("a", "I", "Dr.", "St.", "to", "NASA", "e.g.", "www.a.com", "x@y.org", "don't", "Henry", "é"),
    *(" ", " ", " ", "\n", "[", "](", "/kˈæt/", ")", "[[", "kæt", "]]", "🙂", "²", "①", "猫"),
)
"""What numbers, signs and abbreviations are made of."""


@given(st.text(max_size=80) | st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        sentences = load_g2p(british=False).read(text)
    except InvalidRequest:
        assert "[[" in text
        return
    place = 0
    for sentence in sentences:
        for word in sentence.words:
            assert 0 <= word.span.start <= word.span.end <= len(text)
            assert word.span.start >= place or word.span.end >= place
            place = word.span.start
