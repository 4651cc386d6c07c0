"""Describes a speaker's sound as one vector: spectral shape and pitch.

It needs only NumPy. The api process computes it from a caller's recording, training from the
teachers' recordings.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
import soxr


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
    normalized: npt.NDArray[np.float32] = filters / np.maximum(filters.sum(axis=0), 1e-3)
    return normalized.astype(np.float32)


SAMPLE_RATE = 24_000
MELS = 80
WINDOW = 960
HOP = 480
"""In samples: 40 ms windows every 20 ms."""
FFT_SIZE = 2048
"""More than twice the window, so that the autocorrelation does not wrap around."""
ACTIVE_DB = 35.0
"""Windows this far below the loudest one count as silence."""
LEVEL = 0.1
"""Recordings are scaled to this root mean square."""
LOG_FLOOR = 1e-4
MIN_PITCH_HZ, MAX_PITCH_HZ = 60.0, 400.0
PITCH_BAND_HZ = 1000.0
"""Above this, formants disturb the search."""
NEAR_BEST = 0.85
VOICED = 0.5
"""A window is voiced if its autocorrelation at the pitch period exceeds this share of lag 0."""
DEFAULT_PITCH_HZ = 150.0
"""Pitch of a recording without a voiced window."""
SPEAKER_SIZE = 2 * MELS + 2
"""Mean and deviation of each log-mel band, median and quartile range of log2 pitch."""

MIN_LIKENESS = 0.94
MAX_OCTAVES = 0.3
"""They hold for each of 600 pairs of readings by one of the four embedded voices, and for none of
600 pairs by two."""

Samples = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]


@functools.cache
def _build_filters() -> npt.NDArray[np.float32]:
    return mel_filters(MELS, WINDOW, SAMPLE_RATE)


def _cut_windows(samples: Samples) -> Samples:
    """[N] -> [W, WINDOW]: the windows that are not silent, scaled to `LEVEL` together."""
    padded = np.pad(samples, (0, max(0, WINDOW - len(samples))))
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP]
    power = np.square(windows).mean(axis=1)
    active = power >= power.max() * 10 ** (-ACTIVE_DB / 10)
    gain = LEVEL / max(float(np.sqrt(power[active].mean())), 1e-6)
    return np.asarray(windows[active] * np.float32(gain))


def pitch_track(windows: Samples) -> npt.NDArray[np.float64]:
    """[W, WINDOW] -> pitch in Hz of the voiced windows, by autocorrelation of the lower band."""
    centred = (windows - windows.mean(axis=1, keepdims=True)) * _taper()
    power = np.square(np.abs(np.fft.rfft(centred, FFT_SIZE)))
    power[:, int(PITCH_BAND_HZ * FFT_SIZE / SAMPLE_RATE) :] = 0.0
    correlation = np.fft.irfft(power)[:, :WINDOW] / _taper_correlation()
    low, high = int(SAMPLE_RATE / MAX_PITCH_HZ), int(SAMPLE_RATE / MIN_PITCH_HZ)
    section = correlation[:, low:high] / np.maximum(correlation[:, :1], 1e-9)
    best = section.max(axis=1)
    inner = section[:, 1:-1]
    peaks = (inner >= section[:, :-2]) & (inner > section[:, 2:])
    # Take the first peak nearly as high as the highest: multiples of the period match as well.
    high_peaks = peaks & (inner > NEAR_BEST * best[:, None])
    voiced = (best > VOICED) & high_peaks.any(axis=1)
    periods = low + 1 + high_peaks[voiced].argmax(axis=1)
    return np.asarray(SAMPLE_RATE / periods, np.float64)


@functools.cache
def _taper() -> Samples:
    return np.asarray(np.hanning(WINDOW), np.float32)


@functools.cache
def _taper_correlation() -> npt.NDArray[np.float64]:
    """Returns the taper's own effect on the correlation at each lag (Boersma 1993)."""
    spectrum = np.square(np.abs(np.fft.rfft(_taper(), FFT_SIZE)))
    correlation = np.fft.irfft(spectrum)[:WINDOW]
    return np.asarray(np.maximum(correlation / correlation[0], 1e-2), np.float64)


def speaker_vector(samples: Samples, sample_rate: int) -> Vector:
    """Returns the [SPEAKER_SIZE] float32 vector of a recording, independent of its level.

    Args:
        samples: [N] mono float32.
        sample_rate: Hz.
    """
    if sample_rate != SAMPLE_RATE:
        samples = soxr.resample(samples, sample_rate, SAMPLE_RATE)
    windows = _cut_windows(samples)
    magnitude = np.abs(np.fft.rfft(windows * _taper()))
    bands = np.log(np.maximum(magnitude @ _build_filters(), LOG_FLOOR))
    means = bands.mean(axis=0)
    pitch = np.log2(pitch_track(windows))
    if len(pitch) == 0:
        pitch = np.full(1, np.log2(DEFAULT_PITCH_HZ))
    low, middle, high = np.percentile(pitch, (25, 50, 75))
    parts = (means - means.mean(), bands.std(axis=0), [middle, high - low])
    return np.asarray(np.concatenate(parts), np.float32)


def are_alike(first: Vector, second: Vector) -> bool:
    """Whether two speaker vectors may be of one speaker: by the shape of the spectrum and the
    pitch. It tells strangers with other voices apart, not imitators."""
    shape = float(np.corrcoef(first[:MELS], second[:MELS])[0, 1])
    octaves = abs(float(first[2 * MELS] - second[2 * MELS]))
    return shape >= MIN_LIKENESS and octaves <= MAX_OCTAVES
