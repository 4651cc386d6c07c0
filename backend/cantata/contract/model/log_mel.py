"""The log-mel features that many recognizers take (arXiv:2212.04356, section 2.2), in NumPy.

WHY not transformers' extractor: its import takes longer than a process of the api or of a small
model may take to start.

Letters: N samples at `SPEECH_RATE`, F frames of 10 ms, B frequencies, M mel bins.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from cantata.contract.data.transcripts import SPEECH_RATE

HOP = 160
"""Samples from one frame to the next."""
_FFT = 400
_MIN_POWER = 1e-10
_RANGE = 8.0
"""Values more than this many powers of ten below the loudest are clipped."""


def log_mel(samples: NDArray[np.floating[Any]], mel_bins: int) -> NDArray[np.float32]:
    """Log-mel spectrogram of a sound.

    Args:
        samples: [N], N a multiple of `HOP`, above `_FFT`.
        mel_bins: M.

    Returns:
        [M, F], F = N / `HOP`.
    """
    padded = np.pad(samples.astype(np.float64), _FFT // 2, mode="reflect")
    frames = sliding_window_view(padded, _FFT)[::HOP][: len(samples) // HOP]
    power = np.abs(np.fft.rfft(frames * _build_hann_window())) ** 2
    mels = np.log10(np.maximum(power @ _build_mel_filters(mel_bins), _MIN_POWER))
    mels = np.maximum(mels, mels.max() - _RANGE)
    scaled: NDArray[np.float32] = ((mels.T + 4) / 4).astype(np.float32)
    return scaled


@cache
def _build_hann_window() -> NDArray[np.float64]:
    """[`_FFT`]: a periodic Hann window."""
    return np.hanning(_FFT + 1)[:-1].astype(np.float64)


@cache
def _build_mel_filters(mel_bins: int) -> NDArray[np.float64]:
    """[B, M]: triangles of equal area on Slaney's mel scale."""
    edges = _mels_to_hertz(np.linspace(0, _hertz_to_mels(SPEECH_RATE / 2), mel_bins + 2))
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    frequencies = np.linspace(0, SPEECH_RATE / 2, _FFT // 2 + 1)[:, None]
    rise, fall = (frequencies - low) / (middle - low), (high - frequencies) / (high - middle)
    filters: NDArray[np.float64] = np.maximum(0, np.minimum(rise, fall)) * 2 / (high - low)
    return filters


# Slaney's scale (Auditory Toolbox, 1998): linear up to 1 kHz, 15 mels; logarithmic from there.
_KNEE_HZ, _KNEE_MELS, _LOG_STEP = 1000.0, 15.0, np.log(6.4) / 27


def _hertz_to_mels(hertz: float) -> float:
    """The mel value of a frequency above the knee."""
    return float(_KNEE_MELS + np.log(hertz / _KNEE_HZ) / _LOG_STEP)


def _mels_to_hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert mel values to Hz: [n] -> [n]."""
    above = _KNEE_HZ * np.exp(_LOG_STEP * (mels - _KNEE_MELS))
    return np.where(mels < _KNEE_MELS, mels * _KNEE_HZ / _KNEE_MELS, above)
