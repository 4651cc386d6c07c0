"""Words: which tokens they are, where they begin; loops, and what is heard after the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cantata.contract.data.transcripts import SPEECH_RATE, TranscribedWord
from cantata.contract.model.recognizer import Sound
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
    Pause,
    align_tokens,
    find_pauses,
    join_words,
    place_words,
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


# ---- where words begin


def bursts(seconds: float, *spans: tuple[float, float], noise: float = 0.0) -> Sound:
    """Noise that is loud within the spans."""
    rng = np.random.default_rng(0)
    sound = rng.normal(0, 0.1, round(seconds * SPEECH_RATE))
    times = np.arange(len(sound)) / SPEECH_RATE
    loud = np.zeros(len(sound), bool)
    for start_s, end_s in spans:
        loud |= (times >= start_s) & (times < end_s)
    return (np.where(loud, sound, sound * noise)).astype(np.float32)


def jumps(*words: tuple[str, float]) -> list[TranscribedWord]:
    return [TranscribedWord(text, start_s, 60.0, 1.0) for text, start_s in words]


def spans_of(words: Sequence[TranscribedWord]) -> list[tuple[float, float]]:
    return [(word.start_s, word.end_s) for word in words]


def test_words_begin_where_sound_does_and_end_at_pauses() -> None:
    sound = bursts(3.0, (0.5, 1.0), (1.8, 2.4))
    words = place_words(jumps(("Good", 0.0), ("morning", 1.7)), sound)
    np.testing.assert_allclose(spans_of(words), [(0.47, 1.0), (1.77, 2.4)], atol=0.02)


def test_a_jump_is_late_and_more_so_after_a_short_word() -> None:
    sound = bursts(2.0, (0.0, 2.0))
    for before, late_s in (("a", 0.15), ("morning", 0.03)):
        words = place_words(jumps((before, 0.0), ("b" * len(before), 1.0 + late_s)), sound)
        assert words[1].start_s == pytest.approx(1.0, abs=0.011), "both are equally long"


def test_words_are_as_long_as_their_letters_say() -> None:
    sound = bursts(2.0, (0.0, 2.0))
    # The alignment leaves 10 ms to the second word.
    crowded = jumps(("one", 0.0), ("seven", 0.99), ("nine", 1.0))
    words = place_words(crowded, sound)
    assert words[1].end_s - words[1].start_s > 0.1
    assert [word.end_s for word in words[:-1]] == [word.start_s for word in words[1:]]


def test_a_wide_character_takes_the_time_of_several_letters() -> None:
    sound = bursts(1.0, (0.0, 1.0))
    words = place_words(jumps(("猫", 0.0), ("abcd", 0.59)), sound)
    assert words[1].start_s == pytest.approx(0.5, abs=0.01)


def test_times_are_in_order_and_within_the_window() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        seconds = rng.uniform(0.02, 3)
        starts = np.sort(rng.uniform(0, seconds, rng.integers(1, 12)))
        edges = np.sort(rng.uniform(0, seconds, 4))
        sound = bursts(seconds, (edges[0], edges[1]), (edges[2], edges[3]), noise=0.001)
        words = place_words(jumps(*(("word", start) for start in starts)), sound)
        times = [time for span in spans_of(words) for time in span]
        assert times == sorted(times)
        assert times[0] >= 0
        assert times[-1] <= seconds + 0.005
    assert place_words((), sound) == ()


@pytest.mark.parametrize("samples", [1, 100, 16_000])
def test_words_in_silence_have_times(samples: int) -> None:
    words = place_words(jumps(("you", 0.0), ("know", 0.0)), np.zeros(samples, np.float32))
    assert all(0 <= word.start_s <= word.end_s <= 1 for word in words)


def test_pauses_are_found_above_noise_and_closures_are_none() -> None:
    spans = ((0.5, 1.0), (1.06, 1.5), (2.0, 2.5))
    for noise in (0.0, 0.001, 0.03):
        found = find_pauses(bursts(3.0, *spans, noise=noise))
        expected = [Pause(0.0, 0.5), Pause(1.5, 2.0), Pause(2.5, 3.0)]
        assert len(found) == len(expected), noise
        for pause, right in zip(found, expected, strict=True):
            assert pause.start_s == pytest.approx(right.start_s, abs=0.025)
            assert pause.end_s == pytest.approx(right.end_s, abs=0.025)
    assert find_pauses(bursts(1.0, (0.0, 1.0))) == []
    blip = find_pauses(bursts(1.0, (0.0, 0.2), (0.5, 0.52)))
    assert len(blip) == 1, "what is too short for a word interrupts no pause"


def test_where_no_pause_ends_the_last_word_the_alignment_does() -> None:
    sound = bursts(3.0, (0.0, 3.0))
    words = [TranscribedWord("Good", 0.0, 1.1, 1.0), TranscribedWord("morning.", 1.1, 2.0, 1.0)]
    assert place_words(words, sound)[-1].end_s == 2.0


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
