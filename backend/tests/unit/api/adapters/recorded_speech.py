"""Recorded speech as samples and as files."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import av
import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

RECORDING = Path(__file__).parents[5] / "docs" / "voice" / "clara.mp3"
RATE = 16_000
SUBTYPES = {"linear16": "PCM_16", "mulaw": "ULAW", "alaw": "ALAW"}


@cache
def speech(rate: int = RATE) -> NDArray[np.float32]:
    """[N]: about three seconds of speech with no long pause."""
    sound, own_rate = soundfile.read(RECORDING, dtype="float32")
    resampled: NDArray[np.float32] = soxr.resample(sound, own_rate, rate)
    return resampled


def silence(seconds: float, rate: int = RATE) -> NDArray[np.float32]:
    return np.zeros(int(seconds * rate), np.float32)


def encode(sound: NDArray[np.float32], encoding: str = "linear16", rate: int = RATE) -> bytes:
    """Samples without a header."""
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format="RAW", subtype=SUBTYPES[encoding])
    return file.getvalue()


def write_file(sound: NDArray[np.float32], form: str, codec: str, rate: int = RATE) -> bytes:
    """A file as FFmpeg writes it, without going back."""
    file = io.BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        samples = (sound * 32767).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = RATE
        resampler = av.AudioResampler(stream.format, "mono", rate)
        for one in (*resampler.resample(frame), *resampler.resample(None), None):
            container.mux(stream.encode(one))
    return file.getvalue()
