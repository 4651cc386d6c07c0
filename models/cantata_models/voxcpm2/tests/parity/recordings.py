"""Test input for the encoder: a synthetic recording."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def recording(seconds: float, sample_rate: int, seed: int) -> NDArray[np.float32]:
    """[N]: not a voice, but a changing pitch with overtones, beats and noise.

    Samples are rounded to 16-bit steps: files hold them exactly, and one differing bit in a
    machine's sine has no effect.
    """
    count = int(seconds * sample_rate)
    time = np.arange(count) / sample_rate
    phase = 2 * np.pi * (150.0 * time + 30.0 * time**2)
    tones = sum(np.sin(k * phase + 0.4 * k * np.sin(5 * k * time)) / k for k in range(1, 8))
    loudness = 0.4 + 0.3 * np.sin(2 * np.pi * 2.7 * time)
    noise = np.random.RandomState(seed).random_sample(count) - 0.5
    wave = 0.3 * loudness * tones + 0.1 * noise
    return np.asarray(np.round(wave * 32_768) / 32_768, np.float32)
