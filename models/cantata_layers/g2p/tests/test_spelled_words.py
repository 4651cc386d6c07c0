# ruff: noqa: RUF001 (letters and signs of other languages are what this file is about)
"""Languages read by their spelling: the phones that Kokoro's voices learnt, numbers, places.

`spoken_sentences.json` has for each sentence what the reference package's front end makes of it
(misaki 0.9.4's `EspeakG2P` with espeak-ng 1.52, both run outside this project).
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantata_layers.g2p import hindi, italian_words, portuguese
from cantata_layers.g2p.front_ends import load_reader
from cantata_layers.g2p.language_reader import LanguageReader
from cantata_layers.g2p.said_parts import Alphabet
from cantata_layers.misaki.phones import vocabulary

ALPHABET = Alphabet(vocabulary(), 510)
LETTERS = {number: letter for letter, number in ALPHABET.vocabulary.items()}
SPOKEN: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("spoken_sentences.json").read_text("utf-8")
)
LIMITS = {"e": 0.003, "f": 0.045, "h": 0.01, "i": 0.02, "p": 0.02}
"""Phones that may differ from the reference's, of all sentences. Italian does not write where a
word is stressed, nor Portuguese which of its vowels are open; French words are joined."""


@cache
def reader(language: str) -> LanguageReader:
    return load_reader(language, ALPHABET)


def say(language: str, text: str) -> str:
    return " ".join(
        "".join(LETTERS[number] for number in sentence.phones[1:-1])
        for sentence in reader(language).read(text)
    )


def said_words(language: str, text: str) -> list[tuple[str, str]]:
    """Each word as it is written and as it is said."""
    return [
        (
            text[word.span.start : word.span.end],
            "".join(LETTERS[number] for number in sentence.phones[word.start : word.end]),
        )
        for sentence in reader(language).read(text)
        for word in sentence.words
    ]


def count_edits(said: str, expected: str) -> int:
    """Levenshtein's distance."""
    row = list(range(len(expected) + 1))
    for place, letter in enumerate(said, 1):
        above, row[0] = row[0], place
        for index, other in enumerate(expected, 1):
            changed = above + (letter != other)
            above, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, changed)
    return row[-1]


def share_of_edits(read_by: str, language: str) -> float:
    sentences = SPOKEN[language]
    edits = sum(count_edits(say(read_by, text), phones) for text, phones in sentences.items())
    return edits / sum(map(len, sentences.values()))


@pytest.mark.parametrize("language", LIMITS)
def test_sentences_are_said_as_the_voices_learnt_them(language: str) -> None:
    assert share_of_edits(language, language) < LIMITS[language]


def test_the_sentences_tell_languages_apart() -> None:
    shares = {pair: share_of_edits(*pair) for pair in (("i", "e"), ("p", "e"), ("e", "p"))}
    assert all(share > 0.1 for share in shares.values()), shares


@pytest.mark.parametrize(
    ("language", "word", "phones"),
    [
        ("e", "guitarra", "ɡitˈara"),
        ("e", "pingüino", "piŋɡwˈino"),
        ("e", "CIGÜEÑA", "θiɣwˈeɲa"),
        ("e", "rápidamente", "rˈapiðamˈente"),
        ("e", "DVD", "dˈe ˈuβe ðˈe"),
        ("i", "famiglia", "famˈiʎa"),
        ("i", "ghiaccio", "ɡjˈaʧːo"),
        ("i", "telefonano", "telefˈonano"),
        ("i", "città", "ʧitːˈa"),
        ("p", "coração", "kˌoɾasˈɐ̃ʊ̃"),
        ("p", "dirigente", "ʤˌiɾiʒˈAŋʧy"),
        ("p", "exame", "ˌezˈɐ̃my"),
        ("p", "ninguém", "niŋɡˈAŋ"),
        ("f", "beaucoup", "bokˈu"),
        ("f", "parlent", "pˈaʁl"),
        ("f", "vraiment", "vʁɛmˈɑ̃"),
        ("f", "l'école", "lekˈɔl"),
        ("f", "aujourd'hui", "oʒuʁdyˈi"),
        ("h", "नमस्ते", "nəmˈʌsteː"),
        ("h", "प्रदर्शन", "pɾədˈʌrʃən"),
        ("h", "सरकार", "sˌəɾkˈaːɾ"),
        ("h", "फ़िल्म", "fˈɪlmə"),
    ],
)
def test_words(language: str, word: str, phones: str) -> None:
    assert said_words(language, word) == [(word, phones)]


@pytest.mark.parametrize(
    ("language", "text", "as_if"),
    [
        ("e", "Tengo 1.234,5 €.", "Tengo mil doscientos treinta y cuatro coma cinco euros."),
        ("e", "Un 25 % en 2024.", "Un veinticinco por ciento en dos mil veinticuatro."),
        ("e", "A las 15:30 del 05/12.", "A las quince treinta del cinco doce."),
        ("e", "Hace -5 grados, no 10-5.", "Hace menos cinco grados, no diez cinco."),
        ("e", "Alfonso XIII y el 3º.", "Alfonso trece y el tercero."),
        ("e", "0,05", "cero coma cero cinco"),
        ("e", "El Sr. Paz y la Dra. Gil.", "El señor Paz y la doctora Gil."),
        ("e", "«Sí» –dijo.", "“Sí” —dijo."),
        ("i", "Ho 1.234,5 €.", "Ho milleduecentotrentaquattro virgola cinque euro."),
        ("i", "Luigi XIV: il 25%.", "Luigi quattordici: il venticinque per cento."),
        ("p", "São 15:30; 25%.", "São quinze trinta; vinte e cinco por cento."),
        ("p", "O Sr. Silva tem 3 km.", "O senhor Silva tem três quilômetros."),
        ("e", "El 12.05.2024", "El doce cinco dos mil veinticuatro"),
        ("h", "1,23,456.5 ₹", "एक लाख तेईस हज़ार चार सौ छप्पन दशमलव पाँच रुपये"),
        ("h", "२५% और 0", "पच्चीस प्रतिशत और शून्य"),
    ],
)
def test_numbers_and_signs(language: str, text: str, as_if: str) -> None:
    assert say(language, text) == say(language, as_if)


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("Les enfants", "lez ɑ̃fˈɑ̃"),
        ("Les chats", "le ʃˈa"),
        ("Les héros", "le eʁˈo"),
        ("les, enfin", "le, ɑ̃fˈɛ̃"),
        ("un ami", "œ̃n amˈi"),
        ("C'est mon oncle", "sɛ mɔ̃n ˈɔ̃kl"),
    ],
)
def test_french_words_are_joined(text: str, phones: str) -> None:
    assert say("f", text) == phones


def test_hindi_numbers_have_a_name_each() -> None:
    names = [hindi.count(number) for number in range(100)]
    assert len(set(names)) == 100
    assert hindi.count(50_00_000) == "पचास लाख"
    assert hindi.count(10**15) == "दस करोड़ करोड़"


def test_english_words_in_hindi_are_english() -> None:
    assert said_words("h", "Google है") == [("Google", "ɡˈuɡᵊl"), ("है", "hɛː")]


def test_a_long_number_is_read_digit_by_digit() -> None:
    said = say("e", "007 y 1234567890123456789")
    assert said.startswith("θˈeɾo θˈeɾo sjˈete i ˈuno ðˈos tɾˈes")
    assert len(said_words("e", "1234567890123456789")) == 1


def test_words_have_their_places() -> None:
    assert said_words("e", "¿Un 25 %? [[ˈola]], Sr. Paz") == [
        ("Un", "ˈum"),
        ("25", "bˌAntiθˈinko"),
        ("%", "poɾ θjˈɛnto"),
        ("[[ˈola]]", "ˈola"),
        ("Sr.", "seɲˈoɾ"),
        ("Paz", "pˈaθ"),
    ]
    assert said_words("i", "L’amica è all'estero.") == [
        ("L’amica", "lamˈika"),
        ("è", "e"),
        ("all'estero", "allˈɛstero"),
    ]


def test_accents_may_be_characters_of_their_own() -> None:
    assert say("e", "avio\u0301n, nin\u0303o") == say("e", "avión, niño")


@pytest.mark.parametrize("language", LIMITS)
@settings(max_examples=80, deadline=None)
@given(
    text=st.text(
        st.one_of(st.characters(), st.sampled_from("aeiouáéñçãghlnrstXVI'’123.,:%€- º\u0301कर्मेंँ़२")),
        max_size=50,
    )
)
def test_any_text_is_read_or_silent(language: str, text: str) -> None:
    for sentence in reader(language).read(text.replace("[[", "")):
        assert 3 <= len(sentence.phones) <= 402
        assert sentence.words
        for word in sentence.words:
            assert 0 <= word.span.start < word.span.end <= len(text)
            assert 1 <= word.start < word.end < len(sentence.phones)


@pytest.mark.parametrize("language", LIMITS)
def test_long_texts_are_cut(language: str) -> None:
    text = "La casa grande, " * 300
    sentences = reader(language).read(text)
    assert all(len(one.phones) <= 402 for one in sentences)
    assert sum(len(one.words) for one in sentences) == 900


def test_lists_of_words_are_spelt_with_one_mark_each() -> None:
    for marked in (italian_words.MARKED, portuguese.MARKED):
        for plain, spelt in marked.items():
            assert len(re.findall("[àèéìòóùáâêíôú]", spelt)) == 1, spelt
            assert plain != spelt
