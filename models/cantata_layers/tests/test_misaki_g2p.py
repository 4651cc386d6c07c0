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
from cantata_bench.voice_quality.run import read_sentences
from cantata_layers.misaki.g2p import EnglishG2P, load_g2p
from cantata_layers.misaki.phones import read_phones, vocabulary
from cantata_layers.misaki.sentences import PhonemizedSentence

LETTERS = {number: letter for letter, number in vocabulary().items()}
ORDINARY = (
    "Hello there.",
    "“Don't,” she said; then she left — quickly. Nobody followed!",
    "Dr. Smith and Mrs. Jones paid 25 dollars in 1984, half past 7.",
    "Section 4.2 covers NASA, the IRS and e-mail.",
    "'Wait,' I said (twice); \"it's only a well-known, twenty-year-old song...\"",
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
def test_phones_of_prose_are_the_packages(british: bool) -> None:
    front = Hibari(g2p=load_g2p(british)._g2p)
    for text in (*ORDINARY, *(sentence.text for sentence in read_sentences(None))):
        expected = [front.ids(phonemes) for phonemes in front.phonemize(text)]
        assert [list(one.phones) for one in load_g2p(british).read(text)] == expected, text


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
        begun = time.thread_time()
        reader.read("and so it went on " * (words // 5))
        return time.thread_time() - begun

    cpu_s(500)
    limit_s = 8 * min(cpu_s(4_000) for _ in range(3))
    assert any(cpu_s(16_000) < limit_s for _ in range(3))


def test_several_words_of_one_number_share_its_place(reader: EnglishG2P) -> None:
    text = "Meet at 7:05, or on 2024-03-05."
    spans = [written for written, _ in said_words(text, reader.read(text))]
    assert spans[:2] == ["Meet", "at"]
    assert set(spans[2:]) == {"7:05", "or", "on", "2024-03-05"}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("See no. 5 now. Then go.", 2),
        ("I said no. He left.", 2),
        ("The U.S. Army is in the U.S. He is not.", 2),
        ("Cats, dogs, etc. Then we left at 5 p.m. Mary did, too.", 3),
        ("It is approx. 5 km. See Fig. 3 for more.", 2),
    ],
)
def test_a_full_stop_may_end_no_sentence(text: str, sentences: int, reader: EnglishG2P) -> None:
    assert len(reader.read(text)) == sentences


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("€1.2bn", "wˈʌn pYnt tˈu bˈɪljən jˈʊɹOz"),
        ("CO2", "sˌiˈO tˈu"),
        ("a 10 A fuse", "ɐ tˈɛn ˈæmp fjˈuz"),
        ("Plan A or I", "plˈæn ˈA ɔɹ ˌI"),
        ("A plan", "ɐ plˈæn"),
        ("The answer is no", "ði ˈænsəɹ ɪz nˈO"),
        ("two MP3s", "tˈu ˌɛmpˈi θɹˈiz"),
        ("7 pm", "sˈɛvən pˌiˈɛm"),
        ("3 kN", "θɹˈi kˌilOnˈutᵊnz"),
        ("1 km", "wˈʌn kəlˈɑməTəɹ"),
        ("f(x)", "ˈɛf ʌv ˈɛks"),
        ("cats, etc.", "kˈæts, ɛtsˈɛTəɹə."),
    ],
)
def test_what_is_typed_has_phones(text: str, said: str, reader: EnglishG2P) -> None:
    assert " ".join(map(spelled, reader.read(text))) == said


def test_letters_are_british(reader: EnglishG2P) -> None:
    (sentence,) = load_g2p(british=True).read("A4, Z3")
    assert spelled(sentence) == "ˈA fˈɔː, zˈɛd θɹˈiː"


@pytest.mark.parametrize(
    ("text", "as_words"),
    [
        ("105 people", "One hundred and five people"),
        ("1,000,001", "one million and one"),
        ("03/04/2024", "the third of April twenty twenty four"),
        ("March 4", "March the fourth"),
        ("£2.50", "two pounds fifty"),
        ("5 dl of milk", "Five decilitres of milk"),
        ("at 10:45", "at ten forty five"),
    ],
)
def test_british_phones_are_those_of_the_words(text: str, as_words: str) -> None:
    british = load_g2p(british=True)
    assert [spelled(one) for one in british.read(text)] == [
        spelled(one) for one in british.read(as_words)
    ]


@pytest.mark.parametrize(
    ("text", "british", "said"),
    [
        ("105", True, "wˈʌn hˈʌndɹəd and fˈIv"),
        ("105", False, "wˈʌn hˈʌndɹəd fˈIv"),
        ("5 dl", True, "fˈIv dˈɛsɪlˌiːtəz"),
        ("Na+ ions", False, "ˌɛnˈA plˈʌs ˈIənz"),
    ],
)
def test_an_accent_has_its_own_numbers(text: str, british: bool, said: str) -> None:
    assert " ".join(map(spelled, load_g2p(british).read(text))) == said


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
