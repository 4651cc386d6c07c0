"""Clients' sound: its formats, pieces that end anywhere, and its length."""

from __future__ import annotations

import audioop

import numpy as np
import pytest
from numpy.typing import NDArray

from cantata.speech_input.sound import HEARD_RATE, Encoding, SoundInput


def tone(rate: int, seconds: float = 0.5) -> NDArray[np.int16]:
    times = np.arange(round(seconds * rate)) / rate
    return (12000 * np.sin(2 * np.pi * 440 * times)).astype("<i2")


def heard(sound: SoundInput, data: bytes, piece: int) -> NDArray[np.int16]:
    parts = [sound.feed(data[start : start + piece]) for start in range(0, len(data), piece)]
    return np.concatenate([*parts, sound.end()])


def wire(encoding: Encoding, rate: int) -> bytes:
    data = tone(rate).tobytes()
    # The standard library's G.711 judges FFmpeg's.
    write = {"pcm": lambda d, _: d, "mulaw": audioop.lin2ulaw, "alaw": audioop.lin2alaw}
    return bytes(write[encoding](data, 2))


@pytest.mark.parametrize(("encoding", "rate"), [("pcm", 24000), ("mulaw", 8000), ("alaw", 8000)])
@pytest.mark.parametrize("piece", [1, 333, 1 << 20])
def test_a_tone_is_the_same_tone_in_every_format_and_piece(
    encoding: Encoding, rate: int, piece: int
) -> None:
    found = heard(SoundInput(encoding, rate), wire(encoding, rate), piece).astype(float)
    expected = tone(HEARD_RATE).astype(float)
    assert abs(len(found) - len(expected)) <= 2
    inner = slice(400, 7600)
    error = np.sqrt(np.mean((found[inner] - expected[inner]) ** 2))
    assert error < 0.03 * 12000


def test_a_stream_that_was_ended_leaves_nothing_to_the_next() -> None:
    sound = SoundInput("pcm", 24000)
    sound.feed(tone(24000).tobytes() + b"\x01")
    sound.end()
    silent = heard(sound, bytes(48000), 4800)
    assert len(silent) == pytest.approx(HEARD_RATE, abs=2)
    assert not silent.any()
