"""How transcripts are scored, and what conditions do to sound."""

from __future__ import annotations

import numpy as np
import pytest

from cantata_bench.transcription.recognizers import RecognizedText
from cantata_bench.transcription.recordings import (
    RATE_HZ,
    ReadSentence,
    add_babble,
    join_without_break,
    over_telephone,
)
from cantata_bench.transcription.run import (
    Scores,
    WrittenWords,
    compare_times,
    count_errors,
    make_table,
)

TONE = np.sin(np.arange(RATE_HZ) * 0.3).astype(np.float32) * np.float32(0.3)


@pytest.mark.parametrize(
    ("text", "heard", "errors"),
    [
        ("Twenty cats, don't they?", "20 cats dont they", 0),
        ("You're late.", "You are late", 0),
        ("One two three.", "one two", 1),
        ("One two.", "one two one two one two", 4),
        ("One two.", "", 2),
    ],
)
def test_errors(text: str, heard: str, errors: int) -> None:
    assert count_errors(text, heard)[1] == errors


def test_times_are_compared_word_by_word() -> None:
    spoken = ReadSentence("a", "Two red cats.", TONE, (0.0, 0.5, 1.0))
    heard = RecognizedText("", 0.0, (("two", 0.05), ("cats.", 1.2)))
    assert compare_times(spoken, heard) == (2, 1)
    assert compare_times(spoken, RecognizedText("two", 0.0)) == (0, 0)


def test_babble_has_the_level_that_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    others = [rng.normal(0, 0.1, 3 * RATE_HZ).astype(np.float32) for _ in range(3)]
    noise = add_babble(TONE, others, 10.0, seed=1) - TONE
    ratio = np.sqrt(np.mean(TONE**2) / np.mean(noise**2))
    assert 20 * np.log10(ratio) == pytest.approx(10.0, abs=0.5)


def test_the_telephone_is_narrow() -> None:
    time_s = np.arange(RATE_HZ) / RATE_HZ
    low, middle = (0.5 * np.sin(2 * np.pi * hertz * time_s) for hertz in (100, 1000))
    assert np.abs(over_telephone(low.astype(np.float32))).mean() < 0.02
    assert np.abs(over_telephone(middle.astype(np.float32))).mean() > 0.25


def test_a_long_recording_has_no_pauses() -> None:
    padded = np.concatenate([np.zeros(8000, np.float32), TONE, np.zeros(8000, np.float32)])
    one = ReadSentence("a", "Hm.", padded, (0.5,))
    whole = join_without_break([one, one])
    assert whole.text == "Hm. Hm."
    assert len(whole.sound) <= 2 * len(TONE)


def test_the_table() -> None:
    same, right, wrong = (WrittenWords(("a",), 1), WrittenWords(("b",), 0), WrittenWords(("c",), 3))
    own = Scores("cantata", "clean", 200, 5, 100.0, 12.0, 150, 140, (same, right))
    other = Scores("other", "clean", 200, 8, 100.0, 24.0, 0, 0, (same, wrong))
    text = make_table([own, other])
    assert "| clean | cantata | 2.5% | 0.120 | 93% |" in text
    assert "| clean | other | 4.0% | 0.240 |  | 1 of 2 (0 : 3) |" in text
