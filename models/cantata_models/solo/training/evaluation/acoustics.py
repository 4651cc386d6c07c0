"""Acoustic features for the measures: mel cepstra, level and pitch, one row per 10 ms.

Letters: N samples at 24 kHz, H hops of 10 ms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.stride_tricks import sliding_window_view

from cantata_models.solo.networks.codec_encoder import LogMel

SAMPLE_RATE = 24_000
HOP = 240
MELS = 80
FFT_SIZE = 960
CEPSTRA = 20
"""Excludes the zeroth, which is the level."""
FULL_SCALE = 0.999
"""A sample at or above this clips when converted to 16 bits."""

MIN_PITCH_HZ, MAX_PITCH_HZ = 60.0, 400.0
PITCH_WINDOW = 960
PITCH_RATE_DIVISOR = 3
"""The pitch search runs at 8 kHz."""
PITCH_BAND_HZ = 1200.0
"""Above this, formants disturb the search and a period is not a whole number of samples."""
VOICED = 0.55
"""A hop with at least this normalized autocorrelation counts as voiced."""
VOICED_RANGE_DB = 30.0
"""Hops further than this below the loudest are unvoiced."""

Samples = npt.NDArray[np.float32]
Rows = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Analysis:
    """The features of one recording."""

    cepstra: Rows
    """[H, 20]: mel cepstra 1 to 20."""
    level_db: Rows
    """[H]: level relative to full scale."""
    audible_db: Rows
    """[H]: A-weighted level; only differences are meaningful."""
    pitch_hz: Rows
    """[H]: 0 in unvoiced hops."""


def analyze(samples: Samples) -> Analysis:
    """Measures [N] samples; the last hop is padded with silence."""
    padded = np.pad(samples, (0, -len(samples) % HOP)).astype(np.float32)
    power = np.square(padded.reshape(-1, HOP).astype(np.float64)).mean(axis=1)
    level = 10 * np.log10(power + 1e-10)
    return Analysis(cepstra(padded), level, audible_level(padded), pitch(padded, level))


def a_weights(hertz: Rows) -> Rows:
    """Power gain at these frequencies, 1 at 1 kHz (A-weighting, IEC 61672-1, annex E)."""
    low, middle, high, top = np.square([20.599, 107.653, 737.862, 12194.217])

    def gain(square: Rows) -> Rows:
        edges = np.square((square + low) * (square + top)) * (square + middle) * (square + high)
        found: Rows = square**4 / edges
        return found

    weights: Rows = gain(np.square(hertz)) / gain(np.square(np.array(1000.0)))
    return weights


def audible_level(samples: Samples) -> Rows:
    """[N] -> [H] dB; N is a multiple of 240.

    A-weighted because breath on a microphone is loud but barely audible.
    """
    side = (FFT_SIZE - HOP) // 2
    frames = sliding_window_view(np.pad(samples, side), FFT_SIZE)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(FFT_SIZE), axis=-1)))
    hertz: Rows = np.fft.rfftfreq(FFT_SIZE, 1 / SAMPLE_RATE).astype(np.float64)
    weighted = power @ a_weights(hertz)
    level: Rows = 10 * np.log10(weighted + 1e-10)
    return level


def cepstra(samples: Samples) -> Rows:
    """[N] -> [H, 20]; N is a multiple of 240."""
    mel = LogMel(MELS, FFT_SIZE, HOP, SAMPLE_RATE)
    rows = mel(torch.from_numpy(samples)[None])[0].double().numpy()
    places = (np.arange(MELS) + 0.5) * math.pi / MELS
    basis = np.cos(places[:, None] * np.arange(1, CEPSTRA + 1))
    product: Rows = rows @ basis * (2 / MELS)
    return product


def pitch(samples: Samples, level_db: Rows) -> Rows:
    """[N] and [H] levels -> [H] Hz by normalized autocorrelation (after Boersma, 1993)."""
    slow = samples.reshape(-1, PITCH_RATE_DIVISOR).mean(axis=1)
    rate, hop = SAMPLE_RATE / PITCH_RATE_DIVISOR, HOP // PITCH_RATE_DIVISOR
    size = PITCH_WINDOW // PITCH_RATE_DIVISOR
    padded = np.pad(slow, (size // 2 - hop // 2, size))
    frames = sliding_window_view(padded, size)[::hop][: len(level_db)].astype(np.float64)
    window: Rows = np.hanning(size).astype(np.float64)

    def autocorrelation(rows: Rows, band_hz: float = rate) -> Rows:
        spectrum = np.square(np.abs(np.fft.rfft(rows, 2 * size, axis=-1)))
        spectrum[..., int(band_hz / rate * 2 * size) :] = 0
        lags: Rows = np.fft.irfft(spectrum, axis=-1)[..., :size]
        normalized: Rows = lags / np.maximum(lags[..., :1], 1e-12)
        return normalized

    centred = frames - frames.mean(axis=1, keepdims=True)
    likeness = autocorrelation(centred * window, PITCH_BAND_HZ) / autocorrelation(window)
    first, last = int(rate / MAX_PITCH_HZ), int(rate / MIN_PITCH_HZ)
    # Favour short lags slightly: two periods fit as well as one.
    searched = likeness[:, first : last + 1] - 0.06 * np.log2(np.arange(first, last + 1) / first)
    best = searched.argmax(axis=1) + first
    rows = np.arange(len(best))
    before, here, after = (likeness[rows, best + shift] for shift in (-1, 0, 1))
    bend = np.minimum(before - 2 * here + after, -1e-9)
    hertz = rate / (best + np.clip(0.5 * (before - after) / bend, -0.5, 0.5))
    voiced = (here > VOICED) & (level_db > level_db.max(initial=-100.0) - VOICED_RANGE_DB)
    return np.where(voiced, hertz, 0.0)


def median_pitch_hz(analysis: Analysis) -> float:
    """Returns the median over the voiced hops, or 0 if there are none."""
    voiced = analysis.pitch_hz[analysis.pitch_hz > 0]
    return float(np.median(voiced)) if len(voiced) else 0.0
