# ruff: noqa: RUF001 (IPA letters that look like Latin ones are meant)
"""The front end's contract: sentences, pauses, splitting, overrides and errors."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cantata_layers.english.lexicon import PHONES
from cantata_models.solo.text import Sentence, TextError, phonemize
from cantata_models.solo.text.tokens import SIL


def phonemize_text(text: str) -> str:
    return " ".join(phone for sentence in phonemize(text) for phone in sentence.phones)


def test_a_sentence_has_silence_at_its_ends_and_where_punctuation_pauses() -> None:
    (sentence,) = phonemize("Hello, world.")
    assert sentence.phones == tuple("SIL HH AH L OW SIL W ER L D SIL".split())  # noqa: SIM905
    assert [i for i, start in enumerate(sentence.word_starts) if start] == [1, 6]
    assert [word.phones for word in sentence.words] == [
        ("HH", "AH", "L", "OW"),
        ("W", "ER", "L", "D"),
    ]
    assert [(word.text, word.start, word.end) for word in sentence.words] == [
        ("Hello", 0, 5),
        ("world", 7, 12),
    ]


def test_sentences_split_and_questions_are_flagged() -> None:
    sentences = phonemize("Is it you? Yes. What?! Fine")
    assert [sentence.question for sentence in sentences] == [True, False, True, False]


def test_pauses_never_double() -> None:
    (sentence,) = phonemize("One -- (two), [three]; ... four")
    pairs = zip(sentence.phones, sentence.phones[1:], strict=False)
    assert (SIL, SIL) not in pairs


def test_abbreviations_do_not_end_sentences() -> None:
    assert (
        len(phonemize("Dr. Lee met Mr. J. R. Smith of the U.S. Army at 5 p.m. on Elm St. today."))
        == 1
    )


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("It costs 3.50 now. Pay it.", 2),
        ("It is 5 p.m. Go home.", 2),
        ("J. R. R. Tolkien and S. Lee met. They spoke.", 2),
        ("See fig. 2 and pp. 3-5, e.g. the map, etc. on page 9.", 1),
        ("Node.js 18.2 is at example.com. Get v2.0.1!", 2),
        ('He said "yes." Then he left.', 2),
        ("Wait... and go.", 1),
        ("She lives in the U.S. She works.", 2),
        ("First line\nSecond line", 2),
    ],
)
def test_sentences_end_where_a_reader_stops(text: str, ends: int) -> None:
    assert len(phonemize(text)) == ends


@pytest.mark.parametrize("limit", [3, 4, 10, 25, 60])
def test_long_text_splits_within_the_limit_and_loses_nothing(limit: int) -> None:
    text = "The quick brown fox, which is tired, jumps over the lazy dog and runs far away?"
    whole = [phone for word in phonemize(text)[0].words for phone in word.phones]
    parts = phonemize(text, max_phones=limit)
    assert all(len(part.phones) <= limit for part in parts)
    assert [phone for part in parts for word in part.words for phone in word.phones] == whole
    assert [part.question for part in parts] == [False] * (len(parts) - 1) + [True]


def test_long_sentences_split_at_clauses_first() -> None:
    first, second = phonemize("One two three four five, six seven eight nine ten", max_phones=25)
    assert [word.text for word in first.words] == ["One", "two", "three", "four", "five"]
    assert second.words[0].text == "six"


@pytest.mark.parametrize(
    ("text", "heads"),
    [
        ("one two three four five six and seven eight nine ten", ["one", "and"]),
        ("one two three four five six; seven eight, nine ten", ["one", "seven"]),
        ("one two three four five six - seven eight nine ten", ["one", "seven"]),
    ],
)
def test_a_cut_falls_where_a_speaker_would_breathe(text: str, heads: list[str]) -> None:
    assert [part.words[0].text for part in phonemize(text, max_phones=25)] == heads


def test_a_number_is_not_cut_where_a_gap_between_words_is_near() -> None:
    parts = phonemize("so many more words came 1,200 people many more came", max_phones=38)
    spans = [{(word.start, word.end) for word in part.words} for part in parts]
    assert all(not (before & after) for before, after in pairwise(spans))


def test_sentences_are_at_most_twelve_seconds_long_by_default() -> None:
    text = "They walked and walked, " * 60 + "and then they slept."
    sentences = phonemize(text)
    # The voice speaks at least 11 phones per second.
    assert all(len(sentence.phones) / 11 <= 12.5 for sentence in sentences)
    assert len(sentences) > 5


def test_parts_of_one_clause_are_of_similar_size() -> None:
    parts = phonemize("many " * 30, max_phones=50)
    sizes = [len(part.phones) for part in parts]
    assert max(sizes) - min(sizes) <= 8


def test_max_phones_below_the_least_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 3"):
        phonemize("hello", max_phones=2)


@pytest.mark.parametrize("text", ["[[HH AH L OW]] there", "[[ hh  ah0 l OW1 ]] there"])
def test_override_is_used_as_it_stands(text: str) -> None:
    (sentence,) = phonemize(text)
    assert sentence.words[0].phones == ("HH", "AH", "L", "OW")
    assert sentence.words[0].text.startswith("[[")


@pytest.mark.parametrize(
    ("ipa", "phones"),
    [
        ("həˈloʊ", "HH AH L OW"),
        ("/həˈləʊ/", "HH AH L OW"),
        ("/pit/", "P IY T"),
        ("ˈwɔːtɚ", "W AO T ER"),
        ("t͡ʃɜːrt͡ʃ", "CH ER CH"),
        ("ˈnʌt.ʃɛl", "N AH T SH EH L"),
        ("ˈbɒt.l̩", "B AA T AH L"),
        ("skweə", "S K W EH R"),
        ("aɪ̯ˈdɪə", "AY D IH R"),
        ("ˈvɪʒən θɪŋ ðæt", "V IH ZH AH N TH IH NG DH AE T"),
        ("dʒɔɪ jʊər haʊs", "JH OY Y UH R HH AW S"),
    ],
)
def test_an_override_may_be_ipa(ipa: str, phones: str) -> None:
    (sentence,) = phonemize(f"Say [[{ipa}]] now.")
    _, word, _ = sentence.words
    assert " ".join(word.phones) == phones
    assert word.text == f"[[{ipa}]]"


def test_every_phone_has_an_ipa_symbol() -> None:
    ipa = "ɑ æ ʌ ɔ aʊ aɪ ɛ ɝ eɪ ɪ i oʊ ɔɪ ʊ u b tʃ d ð f ɡ h dʒ k l m n ŋ p ɹ s ʃ t θ v w j z ʒ"
    (sentence,) = phonemize(f"[[/{ipa}/]]")
    assert sorted(sentence.words[0].phones) == list(PHONES)


@pytest.mark.parametrize(
    ("text", "symbol"), [("[[ʘæ]]", "ʘ"), ("[[vɛ̃]]", "ɛ̃"), ("[[/ryː/]]", "y"), ("[[日本]]", "日")]
)
def test_ipa_without_a_phone_is_named_with_what_is_valid(text: str, symbol: str) -> None:
    with pytest.raises(TextError, match=rf"'{symbol}'.*valid IPA symbols are ɑ .* ʒ"):
        phonemize(text)


@pytest.mark.parametrize("text", ["say [[HH QQ]]", "say [[]]", "say [[hello]]"])
def test_a_wrong_override_names_the_valid_phones(text: str) -> None:
    with pytest.raises(TextError, match=r"valid phones are AA AE .* ZH"):
        phonemize(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("...?!", "no words"),
        ("😀🎉", "no words"),
        ("日本語", "scripts"),
        ("привет, мир", "scripts"),
    ],
)
def test_nothing_speakable_is_an_error_that_says_what_is_accepted(text: str, reason: str) -> None:
    with pytest.raises(TextError, match=rf"{reason}.*accepted are letters of the Latin"):
        phonemize(text)


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("the apple", "DH IY AE P AH L"),
        ("the pear", "DH AH P EH R"),
        ("I have read it", "AY HH AE V R EH D IH T"),
        ("I will read it", "AY W IH L R IY D IH T"),
        ("we live here", "W IY L IH V HH IY R"),
        ("a live show", "AH L AY V SH OW"),
        ("no use", "N OW Y UW S"),
        ("I use it", "AY Y UW Z IH T"),
        ("strong wind", "S T R AO NG W IH N D"),
        ("FBI", "EH F B IY AY"),
        ("B2B", "B IY T UW B IY"),
        ("GPUs", "JH IY P IY Y UW Z"),
    ],
)
def test_pronunciation_follows_the_neighbours(text: str, phones: str) -> None:
    assert phonemize_text(text) == f"SIL {phones} SIL"


def test_phones_are_those_of_the_inventory() -> None:
    assert len(PHONES) == 39
    sentences: tuple[Sentence, ...] = phonemize("Zorblat's kwyjibo, at 3:05 p.m., cost $3,497.99!")
    assert {phone for s in sentences for phone in s.phones} <= {*PHONES, SIL}
