"""Finds a mark in sound, wherever that begins and whatever codec it went through."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import soxr
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidAudio
from cantata.contract.service import Samples
from cantata.media.sound import MAX_WORK_S, SoundLimits, read_sound
from cantata.watermark.pattern import SLOT_S, SLOTS, Signs, compute_band_edges

SAMPLE_RATE = 16_000
THRESHOLD = 9.5
"""Scores of marked sound are above it, those of other sound below: docs/protocol.md has how often
they are not."""
_STEPS = 8
"""Per slot, at which the pattern may begin."""
_WINDOW_SLOTS = 1.3
_FLOOR_DB = 55.0
"""Below the loudest; codecs leave nothing of what is softer."""
_MAX_DB = 2.5
"""Larger differences are the speech's own and count no more."""
_MIN_S = 0.5
_HEARD_S = 60.0


@dataclass(frozen=True, slots=True)
class FoundMark:
    """Whether sound has the mark of a key."""

    found: bool
    score: float
    """The best correlation with the pattern, in standard deviations."""


def find_mark(samples: Samples, sample_rate: int, signs: Signs) -> FoundMark:
    """Look for a mark; 10 ms for a second of sound.

    Args:
        samples: [N, C].
        sample_rate: Hz.
    """
    score = score_mark(extract_details(samples, sample_rate), signs)
    return FoundMark(score >= THRESHOLD, score)


def find_mark_in_file(data: bytes, signs: Signs) -> FoundMark | None:
    """Look for a mark in the first minute of a sound file. Blocks.

    Returns:
        None: its sound cannot be read.
    """
    deadline_s = time.monotonic() + MAX_WORK_S
    limits = SoundLimits(float("inf"), _HEARD_S, "any length", deadline_s)
    try:
        sound = read_sound(data, limits, "file")
    except InvalidAudio:
        return None
    return find_mark(sound.samples, sound.sample_rate, signs)


def extract_details(samples: Samples, sample_rate: int) -> NDArray[np.float64]:
    """What may be a mark in sound, whatever its key: [steps, bands]."""
    mono: NDArray[np.float64] = np.mean(samples.astype(np.float64), axis=1)
    if sample_rate != SAMPLE_RATE:
        mono = soxr.resample(mono, sample_rate, SAMPLE_RATE, quality="HQ")
    if len(mono) < _MIN_S * SAMPLE_RATE:
        return np.zeros((0, len(compute_band_edges()) - 1))
    return _remove_speech(_measure_energies(mono))


def score_mark(details: NDArray[np.float64], signs: Signs) -> float:
    """How well details fit the pattern of a key, in standard deviations. Sound may be of several
    utterances, each with a pattern of its own, so long sound is searched in pieces of a pattern's
    length, too."""
    template, period = _subtract_neighbours(signs, 1), SLOTS * _STEPS
    pieces = [details]
    if len(details) > period:
        pieces += [details[at : at + period] for at in range(0, len(details), period // 2)]
    return max(_correlate(piece, template) for piece in pieces)


def _measure_energies(mono: NDArray[np.float64]) -> NDArray[np.float64]:
    """Energies of the bands every `_STEPS`-th of a slot, in dB: [steps, bands]."""
    slot = round(SLOT_S * SAMPLE_RATE)
    width = round(_WINDOW_SLOTS * slot)
    hz, edges = np.fft.rfftfreq(width, 1 / SAMPLE_RATE)[:, None], compute_band_edges()
    bands = ((hz >= edges[:-1]) & (hz < edges[1:])).astype(np.float64)
    frames = np.lib.stride_tricks.sliding_window_view(mono, width)[:: slot // _STEPS]
    parts = [
        np.abs(np.fft.rfft(part * np.hanning(width), axis=1)) ** 2 @ bands
        for part in np.array_split(frames, 1 + len(frames) // 4096)
    ]
    return 10 * np.log10(np.concatenate(parts) + 1e-12)


def _remove_speech(energies: NDArray[np.float64]) -> NDArray[np.float64]:
    """What differs from the slots before and after and from the bands beside: of speech little, of
    a mark most. Zero where there is too little sound."""
    floor = np.percentile(energies.max(axis=1), 95) - _FLOOR_DB
    details = _subtract_neighbours(np.maximum(energies, floor), _STEPS)
    kept: NDArray[np.float64] = np.tanh(details / _MAX_DB) * (energies > floor)
    kept[:_STEPS] = kept[-_STEPS:] = 0
    return kept


def _subtract_neighbours(values: NDArray[np.float64], steps: int) -> NDArray[np.float64]:
    """Values [T, B] less the mean of those `steps` before and after, and then of the bands beside;
    time is taken as a circle."""
    rest = values - (np.roll(values, steps, 0) + np.roll(values, -steps, 0)) / 2
    beside = np.pad(rest, ((0, 0), (1, 1)))
    beside[:, 0], beside[:, -1] = rest[:, 1], rest[:, -2]
    return rest - (beside[:, :-2] + beside[:, 2:]) / 2


def _correlate(details: NDArray[np.float64], template: NDArray[np.float64]) -> float:
    """The best correlation over all places at which the pattern may begin."""
    spread = np.sqrt(np.sum(details**2) / _STEPS * np.mean(template**2))
    if not spread:
        return 0.0
    periods = -(-len(details) // (SLOTS * _STEPS))
    padded = np.pad(details, ((0, periods * SLOTS * _STEPS - len(details)), (0, 0)))
    folded = padded.reshape(periods, SLOTS, _STEPS, -1).sum(axis=0)
    spectrum = np.fft.rfft(folded, axis=0) * np.conj(np.fft.rfft(template, axis=0))[:, None]
    found = np.fft.irfft(spectrum.sum(axis=2), SLOTS, axis=0)
    return float(found.max() / spread)
