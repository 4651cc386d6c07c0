"""Recordings with known words: sentences that voices read, clean and under conditions that hurt.

Letters: N samples at `RATE_HZ`.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

Sound = NDArray[np.float32]
RATE_HZ = 16_000
TELEPHONE_HZ = 8_000
PEAK = 0.5
ESPEAK = "espeak-ng"
"""A third engine, if its command is installed."""
_DEADLINE_S = 120.0
_BABBLERS = 6
_BAND_HZ = (300.0, 3400.0)
_MU = 255.0


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """One sentence as a voice reads it."""

    voice: str
    text: str
    sound: Sound
    """[N]."""
    word_starts: tuple[float, ...]
    """Seconds at which the voice begins each word of the text; empty: unknown."""


def read_aloud(url: str, voice: str, text: str) -> ReadSentence:
    """A sentence by a voice of a running server, with its words' times.

    Raises:
        RuntimeError: the server refused it.
    """
    body = {
        "input": text,
        "voice": voice,
        "response_format": "wav",
        "stream_format": "sse",
        "timestamps": True,
        "seed": 0,
    }
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=_DEADLINE_S)
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"voice {voice}: {text!r} got {answer.status_code}: {answer.text}")
    file, starts = bytearray(), list[float]()
    for event in _read_events(answer.text):
        if event["type"] == "speech.audio.delta":
            file += base64.b64decode(event["audio"])
        elif event["type"] == "speech.audio.timestamps":
            starts += [word["start"] for word in event["words"]]
    return ReadSentence(voice, text, _prepare(*_read_file(bytes(file))), tuple(starts))


def read_by_espeak(text: str) -> ReadSentence | None:
    """A sentence by the command of espeak-ng; None if it is not installed."""
    if shutil.which(ESPEAK) is None:
        return None
    made = subprocess.run(
        [ESPEAK, "-v", "en-us", "--stdout", text], capture_output=True, check=True, timeout=60
    )
    return ReadSentence(ESPEAK, text, _prepare(*_read_file(made.stdout)), ())


def add_babble(sound: Sound, others: Sequence[Sound], decibels: float, seed: int) -> Sound:
    """A sound among others that speak at the same time, quieter by so many decibels.

    Args:
        sound: [N].
        others: what is said around it.
        decibels: of the sound's power over that of all others together.
        seed: of who says what from where.
    """
    rng = np.random.default_rng(seed)
    babble = np.zeros(len(sound), np.float32)
    for number in rng.choice(len(others), _BABBLERS, replace=len(others) < _BABBLERS):
        voice = np.resize(others[number], len(sound))
        babble += np.roll(voice, int(rng.integers(len(sound))))
    scale = _measure_power(sound) / max(_measure_power(babble), 1e-9) * 10 ** (-decibels / 20)
    return _limit(sound + np.float32(scale) * babble)


def over_telephone(sound: Sound) -> Sound:
    """A sound as G.711 carries it: 300 to 3400 Hz, 8 kHz, mu-law of 8 bits."""
    narrow = soxr.resample(sound, RATE_HZ, TELEPHONE_HZ).astype(np.float64)
    spectrum = np.fft.rfft(narrow)
    frequencies = np.fft.rfftfreq(len(narrow), 1 / TELEPHONE_HZ)
    spectrum[(frequencies < _BAND_HZ[0]) | (frequencies > _BAND_HZ[1])] = 0
    band = np.clip(np.fft.irfft(spectrum, len(narrow)), -1, 1)
    coded = np.round(np.sign(band) * np.log1p(_MU * np.abs(band)) / np.log1p(_MU) * 127) / 127
    decoded = np.sign(coded) * ((1 + _MU) ** np.abs(coded) - 1) / _MU
    return _limit(soxr.resample(decoded.astype(np.float32), TELEPHONE_HZ, RATE_HZ))


def join_without_break(spoken: Sequence[ReadSentence]) -> ReadSentence:
    """Sentences one right after the other, without the silences around them."""
    sounds = [_strip(one.sound) for one in spoken]
    text = " ".join(one.text for one in spoken)
    return ReadSentence(spoken[0].voice, text, np.concatenate(sounds), ())


def to_wav(sound: Sound) -> bytes:
    """A sound as a file."""
    file = io.BytesIO()
    soundfile.write(file, sound, RATE_HZ, format="WAV")
    return file.getvalue()


def _read_events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def _read_file(data: bytes) -> tuple[NDArray[np.float32], int]:
    # What a stream of WAV says of its length is not true.
    samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
    return samples.mean(axis=1), rate


def _prepare(samples: NDArray[np.float32], rate_hz: int) -> Sound:
    sound: Sound = soxr.resample(samples, rate_hz, RATE_HZ).astype(np.float32)
    return _limit(sound * np.float32(PEAK / max(float(np.abs(sound).max()), 1e-6)))


def _strip(sound: Sound) -> Sound:
    loud = np.flatnonzero(np.abs(sound) > 0.01)
    return sound[loud[0] : loud[-1] + 1] if len(loud) else sound


def _measure_power(sound: Sound) -> float:
    return float(np.sqrt(np.mean(np.square(sound))))


def _limit(sound: NDArray[Any]) -> Sound:
    limited: Sound = np.clip(sound, -1, 1).astype(np.float32)
    return limited
