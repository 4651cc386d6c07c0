# ruff: noqa: RUF001 (letters of other scripts are what this file is about)
"""Texts of other languages to phones: those of misaki, with every word's place in the text."""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cantata_layers.g2p.front_ends import load_reader
from cantata_layers.g2p.language_reader import LanguageReader, split_sentences
from cantata_layers.g2p.said_parts import Alphabet
from cantata_layers.misaki.phones import vocabulary
from cantata_layers.misaki.sentences import PhonemizedSentence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from misaki.cutlet import Cutlet
    from misaki.zh import ZHG2P

ALPHABET = Alphabet(vocabulary(), 510)
LETTERS = {number: letter for letter, number in ALPHABET.vocabulary.items()}
BOPOMOFO = {
    letter: number
    for number, letter in enumerate(
        ' ;:,.!?/—…"()“”12345R'
        "ㄅㄆㄇㄈㄉㄊㄋㄌㄍㄎㄏㄐㄑㄒㄓㄔㄕㄖㄗㄘㄙㄚㄛㄜㄝㄞㄟㄠㄡㄢㄣㄤㄥㄦㄧㄨㄩㄭ"
        "十月压言阳要阴应用又中穵外万王为文瓮我元云abdefhijklmnopstuvwzæɑəɛɪʃʊʌˈˌθɹŋð",
        1,
    )
}
JAPANESE = (
    "吾輩は猫である。",
    "こんにちは、世界。",
    "「はい」と言った。",
    "ちょっと待って！",
    "東京タワーへ行きました。",
    "ﾊﾝｶｸと（笑）…",
    "2024年11月26日、午後3時。",
)
CHINESE = (
    "你好，世界！",
    "今天是2024年11月26日。",
    "我们一起去“图书馆”吧？",
    "一点儿也不难：不是吗；好。",
)


@cache
def reader(language: str) -> LanguageReader:
    return load_reader(language, ALPHABET)


def spell(sentence: PhonemizedSentence) -> str:
    assert sentence.phones[0] == sentence.phones[-1] == 0
    return "".join(LETTERS[number] for number in sentence.phones[1:-1])


def said_words(language: str, text: str) -> list[tuple[str, str]]:
    """Each word as it is written and as it is said."""
    return [
        (text[word.span.start : word.span.end], spell(one)[word.start - 1 : word.end - 1])
        for one in reader(language).read(text)
        for word in one.words
    ]


def keep(phones: str) -> str:
    """Of the vocabulary, with one space where there are more."""
    return " ".join("".join(one for one in phones if one in ALPHABET.vocabulary).split())


@pytest.mark.parametrize("text", JAPANESE)
def test_japanese_is_misaki_s(text: str) -> None:
    (sentence,) = reader("j").read(text)
    assert spell(sentence) == keep(Cutlet()(text)[0])


@pytest.mark.parametrize("text", CHINESE)
def test_chinese_is_misaki_s(text: str) -> None:
    (sentence,) = reader("z").read(text)
    assert spell(sentence) == keep(ZHG2P()(text)[0])


def test_bopomofo_is_misaki_s() -> None:
    alphabet = Alphabet(BOPOMOFO, 510)
    bopomofo = load_reader("z", alphabet)
    letters = {number: letter for letter, number in BOPOMOFO.items()}
    reference = ZHG2P(version="1.1", en_callable=str)
    for text in CHINESE:
        (sentence,) = bopomofo.read(text)
        phones = "".join(letters[number] for number in sentence.phones[1:-1])
        assert phones == " ".join(reference(text)[0].split())
        first = sentence.words[0]
        assert text.startswith(text[first.span.start : first.span.end])


def test_japanese_words_have_their_places() -> None:
    assert said_words("j", "彼は2024年、ﾀﾜｰへ！") == [
        ("彼", "kaɾe"),
        ("は", "βa"),
        ("2024", "ɲi seɴ ɲiʥɨːjoɴ"),
        ("年", "neɴ"),
        ("ﾀﾜｰ", "taβaː"),
        ("へ", "e"),
    ]


def test_chinese_words_have_their_places() -> None:
    assert said_words("z", "今天2024年，你好！") == [
        ("今天", "ʨi→ntʰjɛ→n"),
        ("2024年", "ɚ↘li↗ŋɚ↘ sɨ↘njɛ↗n"),
        ("你好", "ni↓xau↓"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1,234円", "seɴ ɲi çakɯ saɲʥɨːjoɴ eɴ"),
        ("3.14％", "saɴ teɴ iʨi joɴ paːsento"),
        ("12345678901", "iʨi ɲi saɴ joɴ ɡo ɾokɯ nana haʨi kʲɨː ʣeɾo iʨi"),
        ("٣", "saɴ"),
    ],
)
def test_numbers_that_misaki_misreads(text: str, said: str) -> None:
    ((written, phones),) = said_words("j", text)[:1]
    assert phones.startswith(said.split()[0])
    assert spell(reader("j").read(text)[0]) == said, written


@pytest.mark.parametrize("language", ["j", "z"])
def test_english_words_and_phones_between(language: str) -> None:
    text = {"j": "Hello世界、[[ˈola]]と。", "z": "Hello世界，[[ˈola]]和。"}[language]
    words = said_words(language, text)
    assert words[0] == ("Hello", "həlˈO")
    assert [word for word, _ in words[1:]] == ["世界", "[[ˈola]]", text[-2]]
    assert words[2][1] == "ˈola"
    assert "  " not in spell(reader(language).read(text)[0])


@pytest.mark.parametrize("language", ["j", "z"])
@settings(max_examples=60, deadline=None)
@given(
    text=st.text(
        st.one_of(st.characters(), st.sampled_from("一二不了儿東京ーょっンヽ゛1.,%年 。、A\n")),
        max_size=40,
    )
)
def test_any_text_is_read_or_silent(language: str, text: str) -> None:
    for sentence in reader(language).read(text.replace("[[", "")):
        assert 3 <= len(sentence.phones) <= 402
        assert sentence.words
        for word in sentence.words:
            assert 0 <= word.span.start <= word.span.end <= len(text)
            assert 1 <= word.start < word.end < len(sentence.phones)


def test_long_texts_are_cut() -> None:
    text = "今日はいい天気ですね、" * 100
    sentences = reader("j").read(text)
    assert all(len(one.phones) <= 402 for one in sentences)
    words = [text[word.span.start : word.span.end] for one in sentences for word in one.words]
    assert words.count("天気") == 100


def test_sentences() -> None:
    text = "ある。「いる！」ない？ Uno. Dos... tres, Sr. Paz 3.5! «Cuatro.»\nCinco"
    parts = [text[span.start : span.end].strip() for span in split_sentences(text)]
    assert [part for part in parts if part] == [
        "ある。",
        "「いる！」",
        "ない？",
        "Uno.",
        "Dos... tres, Sr. Paz 3.5!",
        "«Cuatro.»",
        "Cinco",
    ]


def test_english_is_read_without_the_packages_of_other_languages() -> None:
    blocked = "import sys; sys.modules.update(dict.fromkeys(('cn2an', 'jieba', 'misaki')))"
    command = f"{blocked}; import cantata_models.kokoro.request_builder"
    subprocess.run([sys.executable, "-c", command], check=True, timeout=60)
