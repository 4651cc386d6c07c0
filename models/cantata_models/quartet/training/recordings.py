"""Poor recordings of good speech, so that a voice is known in a room and on a telephone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

TILTS_DB = (-4.0, 4.0)
"""Of a smooth curve over frequency, at each of `POINTS`."""
POINTS = 6
NOISES_DB = (15.0, 40.0)
"""Signal to noise."""
TELEPHONE_SHARE = 0.25
TELEPHONE_HZ = (3400.0, 8000.0)

Floats = npt.NDArray[np.float32]


def degrade(samples: Floats, sample_rate: int, rng: np.random.Generator) -> Floats:
    """[N] -> [N] through another microphone, with noise, at times without the upper band."""
    spectrum = np.fft.rfft(samples)
    hertz = np.linspace(0.0, sample_rate / 2, len(spectrum))
    octaves = np.log2(np.maximum(hertz, 50.0) / 50.0)
    curve = np.interp(
        octaves, np.linspace(0.0, octaves[-1], POINTS), rng.uniform(*TILTS_DB, POINTS)
    )
    spectrum = spectrum * 10 ** (curve / 20)
    level = np.sqrt(np.mean(np.square(samples))) * 10 ** (-rng.uniform(*NOISES_DB) / 20)
    noise = np.fft.rfft(rng.standard_normal(len(samples)) * level)
    if rng.random() < 0.5:  # noise of rooms falls with frequency
        noise = noise / np.sqrt(np.maximum(hertz, 50.0) / 500.0)
    spectrum = spectrum + noise
    if rng.random() < TELEPHONE_SHARE:
        spectrum[hertz > rng.uniform(*TELEPHONE_HZ)] = 0.0
    heard: Floats = np.fft.irfft(spectrum, len(samples)).astype(np.float32)
    return heard
