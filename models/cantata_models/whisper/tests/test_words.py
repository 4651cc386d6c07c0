"""Words: which tokens they are; loops, and what is heard after the end."""

from __future__ import annotations

import pytest

from cantata.contract.data.transcripts import SPEECH_RATE
from cantata_models.whisper.checkpoint import Vocabulary
from cantata_models.whisper.plugin import PLUGIN
from cantata_models.whisper.recognizer import (
    ATTEMPTS,
    Attempt,
    WhisperRecognizer,
    list_attempts,
    looks_like_loop,
)
from cantata_models.whisper.words import (
    AlignedToken,
    align_tokens,
    join_words,
)


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    assert PLUGIN.embedded_checkpoint is not None
    return Vocabulary(PLUGIN.embedded_checkpoint, is_multilingual=False)


def tokens_of(vocabulary: Vocabulary, text: str) -> list[AlignedToken]:
    """One each tenth of a second."""
    numbers = vocabulary.encode(text)
    return [AlignedToken(number, place / 10, 0.5) for place, number in enumerate(numbers)]


def words_of(vocabulary: Vocabulary, text: str, code: str = "en") -> list[str]:
    words = join_words(tokens_of(vocabulary, text), vocabulary, code, 60.0)
    numbers = [number for word in words for number in word.tokens]
    assert not words or numbers == vocabulary.encode(text), "every token is part of a word"
    return [word.text for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" Stop, don't go! It's Ada's.", ["Stop,", "don't", "go!", "It's", "Ada's."]),
        (' He said, "Yes." Then', ["He", "said,", '"Yes."', "Then"]),
        (" It costs $5.20 (or €4).", ["It", "costs", "$5.20", "(or", "€4)."]),
        (" So - they - left ...", ["So -", "they -", "left ..."]),
        ("... and so", ["... and", "so"]),
        (" ...", ["..."]),
        (" Antidisestablishmentarianism works", ["Antidisestablishmentarianism", "works"]),
        (" naïve Zoë 🙂 laughs", ["naïve", "Zoë 🙂", "laughs"]),
        (" ", []),
        ("", []),
    ],
)
def test_words_and_their_punctuation(vocabulary: Vocabulary, text: str, words: list[str]) -> None:
    assert words_of(vocabulary, text) == words


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("猫が好き。", "ja", ["猫", "が", "好", "き。"]),
        ("彼は「猫」と言う", "ja", ["彼", "は", "「猫」", "と", "言", "う"]),
        ("我用iPhone打", "zh", ["我", "用", "iPhone", "打"]),
        ("猫 cat", "zh", ["猫", "cat"]),
    ],
)
def test_languages_without_spaces(
    vocabulary: Vocabulary, text: str, code: str, words: list[str]
) -> None:
    assert len(vocabulary.encode(text)) > len(words), "characters are cut over tokens"
    assert words_of(vocabulary, text, code) == words


def test_a_text_that_ends_within_a_character(vocabulary: Vocabulary) -> None:
    numbers = vocabulary.encode(" cat 鬱")
    tokens = [AlignedToken(number, 0.1, 1.0) for number in numbers[:-1]]
    words = join_words(tokens, vocabulary, "en", 1.0)
    assert words[0].text == "cat"
    assert sum(len(word.tokens) for word in words) == len(tokens)


def test_times_and_probabilities_of_words(vocabulary: Vocabulary) -> None:
    numbers = vocabulary.encode(" Good morning.")
    assert len(numbers) == 3
    tokens = [
        AlignedToken(number, start_s, probability)
        for number, start_s, probability in zip(
            numbers, (0.1, 0.5, 0.9), (1.0, 0.5, 0.25), strict=True
        )
    ]
    first, last = join_words(tokens, vocabulary, "en", 1.2)
    assert (first.start_s, first.end_s, first.probability) == (0.1, 0.5, 1.0)
    assert (last.start_s, last.end_s, last.probability) == (0.5, 0.9, 0.375), "to its full stop"
    (alone,) = join_words(tokens[1:2], vocabulary, "en", 1.2)
    assert alone.end_s == 1.2, "nothing says where it ends"


def test_a_token_begins_at_its_first_row() -> None:
    pairs = [(0, 0), (0, 1), (1, 2), (1, 9), (3, 9), (3, 10), (4, 30)]
    tokens = align_tokens([7, 8, 9, 10], pairs, [0.1, 0.2, 0.3, 0.4])
    assert [token.start_s for token in tokens] == pytest.approx([0, 0.04, 0.04, 0.18])
    assert [token.probability for token in tokens] == [0.1, 0.2, 0.3, 0.4]


def test_the_bytes_of_tokens_are_those_of_the_text(vocabulary: Vocabulary) -> None:
    text = " Zoë's 🙂\n\t 猫, \xa0\x00\x7f"
    numbers = vocabulary.encode(text)
    assert b"".join(map(vocabulary.to_bytes, numbers)) == text.encode()
    assert any("\ufffd" in vocabulary.decode([number]) for number in numbers)


def test_marks_stand_before_the_text(vocabulary: Vocabulary) -> None:
    marks = [vocabulary._id(mark) for mark in ("<|startoftranscript|>", "<|notimestamps|>")]
    assert vocabulary.build_prompt("  ", "en", translate=False) == marks
    prompt = vocabulary.build_prompt("Ada <|endoftext|> ", "en", translate=False)
    assert prompt[0] == vocabulary._id("<|startofprev|>")
    assert prompt[-2:] == marks
    assert max(prompt[1:-2]) < vocabulary.end, "a mark in a prompt is no mark"
    assert vocabulary.decode(prompt).startswith(" Ada")


# ---- loops, and what comes after the end


@pytest.mark.parametrize(
    ("text", "is_loop"),
    [
        ("", False),
        ("She sells sea shells by the sea shore.", False),
        ("No, no, no.", False),
        ("I saw it. I saw it.", False),
        ("I was at the shop. I was at the shop.", True),
        ("thank you " * 3, True),
        ("ha" * 60, True),
        ("猫" * 60, True),
    ],
)
def test_loops(text: str, is_loop: bool) -> None:
    assert looks_like_loop(text) == is_loop


def test_a_second_attempt_hears_more_silence_or_is_left_out() -> None:
    greedy = [(1000, 0.0), (2000, 0.0), (3000, 0.0)]
    assert list_attempts(SPEECH_RATE, None) == [*(Attempt(*one) for one in greedy), ATTEMPTS[-1]]
    longer = list_attempts(20 * SPEECH_RATE, None)
    assert longer == [Attempt(2300, 0.0), Attempt(3000, 0.0), Attempt(2300, 0.4)]
    assert list_attempts(30 * SPEECH_RATE, None) == [Attempt(3000, 0.0), Attempt(3000, 0.4)]
    assert list_attempts(SPEECH_RATE, 0.7) == [Attempt(1500, 0.7)]
    assert all(one.frames % 2 == 0 for one in list_attempts(250_001, None))


def test_what_begins_after_the_end_was_not_said(vocabulary: Vocabulary) -> None:
    recognizer = WhisperRecognizer(None, vocabulary, 80, is_exact=True)
    tokens = tokens_of(vocabulary, " One two. Thank you.")
    assert len(tokens) == 6
    # A full stop may come later than its word.
    for seconds, kept in ((1.0, 6), (0.45, 6), (0.35, 4), (0.25, 3), (0.15, 3), (0.1, 1)):
        assert len(recognizer._drop_late(tokens, seconds)) == kept
