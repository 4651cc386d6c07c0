"""Mel filters in NumPy, so that processes without torch can use them too."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def mel_filters(mels: int, fft_size: int, sample_rate: int) -> npt.NDArray[np.float32]:
    """Returns [bins, mels] triangular filters up to half the sample rate, equally spaced in mel.
    Each filter sums to one."""
    top = 2595.0 * math.log10(1.0 + sample_rate / 2 / 700.0)
    points = np.linspace(0.0, top, mels + 2)
    hertz = 700.0 * (10.0 ** (points / 2595.0) - 1.0)
    bins = np.linspace(0.0, sample_rate / 2, fft_size // 2 + 1)[:, None]
    rising = (bins - hertz[:-2]) / (hertz[1:-1] - hertz[:-2])
    falling = (hertz[2:] - bins) / (hertz[2:] - hertz[1:-1])
    filters = np.maximum(np.minimum(rising, falling), 0.0)
    normalised: npt.NDArray[np.float32] = filters / np.maximum(filters.sum(axis=0), 1e-3)
    return normalised.astype(np.float32)
