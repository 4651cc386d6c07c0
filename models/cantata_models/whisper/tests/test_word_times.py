"""Where words begin and end in the sound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from cantata.contract.data.transcripts import SPEECH_RATE, TranscribedWord
from cantata.contract.model.recognizer import Sound
from cantata_models.whisper.word_times import SilentSpan, find_pauses, place_words


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
    return [TranscribedWord(text, start_s, 60.0, 1.0, tokens=(0,)) for text, start_s in words]


def spans_of(words: Sequence[TranscribedWord]) -> list[tuple[float, float]]:
    return [(word.start_s, word.end_s) for word in words]


def test_words_begin_where_sound_does_and_end_at_pauses() -> None:
    sound = bursts(3.0, (0.5, 1.0), (1.8, 2.4))
    words = place_words(jumps(("Good", 0.0), ("morning", 1.7)), sound)
    np.testing.assert_allclose(spans_of(words), [(0.47, 1.0), (1.77, 2.4)], atol=0.02)


def test_a_jump_is_late_and_more_so_after_a_short_word() -> None:
    sound = bursts(2.0, (0.0, 2.0))
    # By its letters, and because the second is the last one, each takes a second.
    for before, after, late_s in (("abc", "de", 0.1), ("afternoon", "people", -0.037)):
        words = place_words(jumps((before, 0.0), (after, 1.0 + late_s)), sound)
        assert words[1].start_s == pytest.approx(1.0, abs=0.011)


def test_a_jump_is_later_behind_a_mark_and_to_a_word_of_several_tokens() -> None:
    sound = bursts(2.0, (0.0, 2.0))
    plain, marked = jumps(("abc", 0.0), ("de", 1.1)), jumps(("abc,", 0.0), ("de", 1.15))
    parts = [plain[0], replace(plain[1], start_s=1.14, tokens=(1, 2))]
    for words in (plain, marked, parts):
        assert place_words(words, sound)[1].start_s == pytest.approx(1.0, abs=0.011)


def test_the_last_word_before_a_pause_takes_longer() -> None:
    sound = bursts(3.0, (0.0, 1.2), (1.6, 2.8))
    words = place_words(
        jumps(*zip(("ab", "cd", "ef", "gh"), (0, 0.7, 1.6, 2.3), strict=True)), sound
    )
    for first, last in (words[:2], words[2:]):
        assert last.end_s - last.start_s > first.end_s - first.start_s


def test_words_are_as_long_as_their_letters_say() -> None:
    sound = bursts(2.0, (0.0, 2.0))
    # The alignment leaves 10 ms to the second word.
    crowded = jumps(("one", 0.0), ("seven", 0.99), ("nine", 1.0))
    words = place_words(crowded, sound)
    assert words[1].end_s - words[1].start_s > 0.1
    assert [word.end_s for word in words[:-1]] == [word.start_s for word in words[1:]]


@pytest.mark.parametrize("long", ["猫", "7"])
def test_a_wide_character_and_a_digit_take_the_time_of_several_letters(long: str) -> None:
    sound = bursts(1.0, (0.0, 1.0))
    words = place_words(jumps((long, 0.0), ("abcd", 0.48)), sound)
    assert words[1].start_s == pytest.approx(0.4, abs=0.01)


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
        expected = [SilentSpan(0.0, 0.5), SilentSpan(1.5, 2.0), SilentSpan(2.5, 3.0)]
        assert len(found) == len(expected), noise
        for pause, right in zip(found, expected, strict=True):
            assert pause.start_s == pytest.approx(right.start_s, abs=0.025)
            assert pause.end_s == pytest.approx(right.end_s, abs=0.025)
    assert find_pauses(bursts(1.0, (0.0, 1.0))) == []
    blip = find_pauses(bursts(1.0, (0.0, 0.2), (0.5, 0.52)))
    assert len(blip) == 1, "what is too short for a word interrupts no pause"


def test_where_no_pause_ends_the_last_word_the_alignment_does() -> None:
    sound = bursts(3.0, (0.0, 3.0))
    words = [
        replace(one, end_s=end_s)
        for one, end_s in zip(jumps(("Good", 0.0), ("morning.", 1.1)), (1.1, 2.0), strict=True)
    ]
    assert place_words(words, sound)[-1].end_s == 2.0
