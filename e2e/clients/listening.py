"""The texts of the tests, and whether the sound is that text."""

from __future__ import annotations

import io
import re

import av
import numpy as np
from numpy.typing import NDArray

from cantata_bench.asr import transcribe, word_error_rate

SENTENCES = "Good morning. The weather is very nice today."
LONG_TEXT = "She went to the market to buy some bread and milk. " * 20
KEY = "no-key-is-needed"
WORST_WER = 0.3


def assert_heard(pcm: NDArray[np.int16], sample_rate_hz: int) -> None:
    """The sound is `SENTENCES`, once, at this rate."""
    seconds = len(pcm) / sample_rate_hz
    assert 1.5 < seconds < 6, f"{seconds:.1f} s of sound"
    heard = transcribe(pcm, sample_rate_hz)
    assert word_error_rate([SENTENCES], [heard]) <= WORST_WER, heard


def samples(data: bytes) -> NDArray[np.int16]:
    """Bare s16le samples."""
    return np.frombuffer(data, "<i2")


def decode(data: bytes) -> tuple[NDArray[np.int16], int]:
    """A sound file's samples and rate."""
    resampler = av.AudioResampler("s16", "mono")
    with av.open(io.BytesIO(data)) as file:
        frames = [one for frame in file.decode(audio=0) for one in resampler.resample(frame)]
    pcm = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    return pcm.astype(np.int16), frames[0].sample_rate


def assert_words(text: str) -> None:
    """A recognizer has understood `SENTENCES`, once."""
    spoken = re.findall(r"\w+", SENTENCES.lower())
    assert re.findall(r"\w+", text.lower()) == spoken, text
