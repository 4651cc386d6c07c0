"""Test input for the encoders: a synthetic recording in stereo."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 48_000


def stereo_recording(seconds: float, seed: int) -> NDArray[np.float32]:
    """[N, 2]: not a voice, but two different channels of pitch, beats and noise.

    Samples are rounded to 16-bit steps, so that one differing bit in a machine's sine has no
    effect.
    """
    count = int(seconds * SAMPLE_RATE)
    time = np.arange(count) / SAMPLE_RATE
    phase = 2 * np.pi * (140.0 * time + 25.0 * time**2)
    left = sum(np.sin(k * phase + 0.5 * k * np.sin(4 * k * time)) / k for k in range(1, 10))
    right = sum(np.cos(k * phase - 0.8 * k * np.sin(3 * k * time)) / k for k in range(1, 10))
    loudness = 0.3 + 0.25 * np.sin(2 * np.pi * 3.1 * time)
    noise = np.random.RandomState(seed).random_sample((count, 2)) - 0.5
    wave = 0.3 * loudness[:, None] * np.stack([left, right], axis=1) + 0.1 * noise
    return np.asarray(np.round(wave * 32_768) / 32_768, np.float32)
