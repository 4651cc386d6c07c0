"""Do the judges of sound hear? Each fault is put into real sentences."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import soundfile

from .conftest import KNOWN
from .judges import speech, waveform
from .judges.waveform import Samples
from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level1]

RATE = 24_000
FRAME = 1920
SENTENCE = 3


@pytest.fixture(scope="module")
def model() -> str:
    return KNOWN


@pytest.fixture(scope="module")
def sounds(server: Server) -> Mapping[str, Samples]:
    """The same sentence in every voice whose teacher is known."""

    def spoken(voice: str) -> Samples:
        text = speech.short_form()[SENTENCE]
        answer = server.speech(input=text, voice=voice, response_format="wav")
        sound, rate = soundfile.read(io.BytesIO(answer.content), dtype="float32")
        assert rate == RATE
        return np.asarray(sound)

    voices = server.get("/v1/audio/voices").json()["voices"]
    return {voice["id"]: spoken(voice["id"]) for voice in voices if voice["model"] == KNOWN}


def loud_place(sound: Samples) -> int:
    """The middle of the loudest 80 ms."""
    rows = sound[: len(sound) // FRAME * FRAME].reshape(-1, FRAME)
    return int(np.square(rows).mean(axis=1).argmax()) * FRAME + FRAME // 2


def scaled(factor: float, seconds: float) -> Callable[[Samples], Samples]:
    def apply(sound: Samples) -> Samples:
        changed, at = sound.copy(), loud_place(sound)
        changed[at : at + round(seconds * RATE)] *= factor
        return changed

    return apply


def spliced(skip: int) -> Callable[[Samples], Samples]:
    """Jumps this many samples ahead, or back, in the loudest place."""

    def apply(sound: Samples) -> Samples:
        at = loud_place(sound)
        return np.concatenate([sound[:at], sound[at + skip :]])

    return apply


def swapped(sound: Samples) -> Samples:
    at = loud_place(sound) - FRAME
    first, second = sound[at : at + FRAME], sound[at + FRAME : at + 2 * FRAME]
    return np.concatenate([sound[:at], second, first, sound[at + 2 * FRAME :]])


def stretched(factor: float) -> Callable[[Samples], Samples]:
    """The sound as a wrong rate makes it."""

    def apply(sound: Samples) -> Samples:
        at = np.arange(0, len(sound) - 1, 1 / factor)
        return np.interp(at, np.arange(len(sound)), sound).astype(np.float32)  # type: ignore[no-any-return]

    return apply


def at_random(sound: Samples) -> Samples:
    changed = sound.copy()
    changed[np.random.default_rng(3).integers(0, len(sound), 10)] = 0.5
    return changed


FAULTS: dict[str, Callable[[Samples], Samples]] = {
    "offset": lambda sound: sound + np.float32(0.05),
    "small offset": lambda sound: sound + np.float32(0.012),
    "hole of 30 ms": scaled(0.0, 0.03),
    "hole of 6 ms": scaled(0.0, 0.006),
    "muted": scaled(0.1, 0.03),
    "halved for a frame": scaled(0.5, 0.08),
    "inverted for a frame": scaled(-1.0, 0.08),
    "frame dropped": spliced(FRAME),
    "frame repeated": spliced(-FRAME),
    "50 samples dropped": spliced(50),
    "frames swapped": swapped,
    "last phones lost": lambda sound: sound[: -2 * FRAME],
    "clipped": lambda sound: np.clip(sound, -0.2, 0.2),
    "wrapped": lambda sound: (((2.5 * sound + 1) % 2) - 1).astype(np.float32),
    "too loud": lambda sound: np.float32(1.5) * sound,
    "too soft": lambda sound: np.float32(0.6) * sound,
    "rate of 16 kHz": stretched(1.5),
    "rate of 32 kHz": stretched(0.75),
    "noise": lambda sound: (
        sound + np.random.default_rng(1).normal(0, 0.003, len(sound)).astype(np.float32)
    ),
    "8 bits": lambda sound: np.round(sound * 128) / np.float32(128),
    "ten samples wrong": at_random,
    "silence before it": lambda sound: np.concatenate([np.zeros(RATE // 2, np.float32), sound]),
}


def judged(voice: str, sound: Samples) -> list[str]:
    text = speech.short_form()[SENTENCE]
    return [*waveform.faults(sound, RATE), *speech.faults(text, voice, sound, RATE)]


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_heard_in_every_voice(sounds: Mapping[str, Samples], fault: str) -> None:
    missed = [voice for voice, sound in sounds.items() if not judged(voice, FAULTS[fault](sound))]
    assert missed == []


def test_sound_speech_has_no_fault(sounds: Mapping[str, Samples]) -> None:
    for voice, sound in sounds.items():
        found = judged(voice, sound)
        assert not found, f"{voice}: {'; '.join(found)}"


def test_another_voice_is_heard_as_such(sounds: Mapping[str, Samples]) -> None:
    for voice, sound in sounds.items():
        assert speech.sounds_like(sound, RATE) == voice
