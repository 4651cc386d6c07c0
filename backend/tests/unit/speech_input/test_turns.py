"""Where turns begin and end, by given probabilities; and by Silero's network on a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from cantata.speech_input.sound import HEARD_RATE, Heard
from cantata.speech_input.turns import (
    FixedSilence,
    SpeechOnset,
    SpeechStopped,
    Turn,
    TurnDetector,
)
from cantata.speech_input.vad import WINDOW, SileroJudge

RECORDING = Path(__file__).parents[4] / "docs" / "voice" / "clara.mp3"


class Given:
    """Probabilities as they were given, then silence."""

    def __init__(self, *probabilities: float) -> None:
        self._next = iter(probabilities)

    def compute_probability(self, window: Heard) -> float:
        assert len(window) == WINDOW
        return next(self._next, 0.0)


async def turns(detector: TurnDetector, windows: int, pieces: int = WINDOW) -> list[Turn]:
    sound = np.zeros(windows * WINDOW, np.int16)
    return [
        turn
        for start in range(0, len(sound), pieces)
        for turn in await detector.feed(sound[start : start + pieces])
    ]


def detector(*probabilities: float, silence_ms: int = 96, longest_s: float = 60) -> TurnDetector:
    """Three windows of silence end a turn."""
    return TurnDetector(Given(*probabilities), 0.5, FixedSilence(silence_ms), longest_s)


def silero() -> TurnDetector:
    return TurnDetector(SileroJudge(), 0.5, FixedSilence(500), 60)


@pytest.mark.parametrize("pieces", [WINDOW, 100, 5000])
async def test_a_turn_begins_with_speech_and_ends_with_silence(pieces: int) -> None:
    found = await turns(detector(0, 0, 0.6, 0.9, 0.9, 0, 0, 0), 10, pieces)
    assert found == [SpeechOnset(2 * WINDOW), SpeechStopped(8 * WINDOW)]


async def test_a_click_is_no_speech_and_a_short_pause_no_end() -> None:
    assert await turns(detector(0.9, 0, 0.9, 0), 10) == []
    found = await turns(detector(0.9, 0.9, 0, 0, 0.9, 0, 0, 0), 10)
    assert found == [SpeechOnset(0), SpeechStopped(8 * WINDOW)]


async def test_quiet_speech_continues_a_turn_but_does_not_begin_one() -> None:
    found = await turns(detector(0.4, 0.4, 0.6, 0.6, 0.4, 0.4, 0.4, 0.4, 0, 0, 0), 12)
    assert found == [SpeechOnset(2 * WINDOW), SpeechStopped(11 * WINDOW)]


async def test_a_turn_without_end_is_ended() -> None:
    found = await turns(detector(*[0.9] * 100, longest_s=1.024), 40)
    assert found[:2] == [SpeechOnset(0), SpeechStopped(32 * WINDOW)]


async def test_after_a_reset_the_next_speech_is_a_new_turn() -> None:
    one = detector(*[0.9] * 6)
    assert await turns(one, 3) == [SpeechOnset(0)]
    one.reset()
    assert await turns(one, 3) == [SpeechOnset(3 * WINDOW)]


async def test_silero_finds_the_sentence_in_a_recording() -> None:
    """Against the recording's level: voiced sound is far above the silence around it."""
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    lead_s, tail_s = 1.0, 1.5
    narrow = soxr.resample(sound, rate, HEARD_RATE)
    loud = np.flatnonzero(np.abs(narrow) > 0.05)
    first_s, last_s = lead_s + loud[0] / HEARD_RATE, lead_s + loud[-1] / HEARD_RATE
    whole = np.concatenate(
        [np.zeros(int(lead_s * HEARD_RATE)), narrow, np.zeros(int(tail_s * HEARD_RATE))]
    )
    heard = (whole * 32767).astype(np.int16)
    started, stopped = await silero().feed(heard)
    assert isinstance(started, SpeechOnset)
    assert abs(started.at / HEARD_RATE - first_s) < 0.15
    assert isinstance(stopped, SpeechStopped)
    assert abs(stopped.at / HEARD_RATE - 0.5 - last_s) < 0.25
    noise = np.random.default_rng(0).normal(0, 300, 3 * HEARD_RATE).astype(np.int16)
    assert await silero().feed(noise) == []
