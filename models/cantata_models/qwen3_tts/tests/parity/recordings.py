"""The codec's test input: synthetic recordings and random frames."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 24_000


def recording(seconds: float) -> NDArray[np.float32]:
    """[N] mono: not a voice, but pitch, beats and noise that change over time.

    Samples are rounded to 16-bit steps, so that one differing bit in a machine's sine has no
    effect.
    """
    count = int(seconds * SAMPLE_RATE)
    time = np.arange(count) / SAMPLE_RATE
    pitch = 130.0 * time + 18.0 * time**2
    phase = 2 * np.pi * pitch
    tone = sum(np.sin(k * phase + 0.7 * k * np.sin(3 * k * time)) / k for k in range(1, 12))
    loudness = 0.35 + 0.25 * np.sin(2 * np.pi * 2.3 * time)
    noise = np.random.RandomState(7).random_sample(count) - 0.5
    wave = 0.3 * loudness * tone + 0.05 * noise
    return (np.round(wave * 32_768) / 32_768).astype(np.float32)


def random_frames(count: int, codebooks: int, codes: int) -> NDArray[np.int64]:
    """[count, codebooks] frames without any pattern."""
    return np.random.RandomState(11).randint(0, codes, (count, codebooks)).astype(np.int64)
