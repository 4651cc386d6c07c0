"""Plays sound faster or slower at its original pitch, piece by piece.

WSOLA (Verhelst and Roelands, 1993): windows of the sound are overlapped at other distances
than they were taken at, each shifted by a few milliseconds to where it best continues
the one before. FFmpeg's `atempo` does the same with windows twice as long, which blurs speech; with
windows as short as these it loses low voices, because it compares no more than half a window.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cantata.contract.service import Samples

WINDOW_S = 0.02
"""Length of a window: two periods of a low voice. With 30 ms, speech at twice the pace is harder to
understand."""
REACH_S = 0.012
"""How far a window may be shifted: a period of a low voice."""
_MIN_SAMPLES = 4
_FLOOR = 1e-9
"""Energy per sample below which sound counts as silence."""


class TimeStretch:
    """One stream. Its output does not depend on how the samples were cut into pieces.

    Input at t seconds is output at t / factor. `WINDOW_S` / 2 + `REACH_S` of the input are
    held back until more or the end comes.

    Args:
        factor: 2 is twice as fast.
        sample_rate: Hz.
        channels: 1 or more.
    """

    def __init__(self, factor: float, sample_rate: int, channels: int) -> None:
        self._factor = factor
        self._channels = channels
        self._hop = max(_MIN_SAMPLES, round(sample_rate * WINDOW_S / 2))
        self._reach = max(1, round(sample_rate * REACH_S))
        phases = np.arange(2 * self._hop) / (2 * self._hop)
        window = (0.5 - 0.5 * np.cos(2 * np.pi * phases)).astype(np.float32)
        self._window = window[:, None]
        margin = self._hop + self._reach
        self._input = self._build_silence(margin)
        """The part of the input that windows may still be taken from."""
        self._start = -margin
        """Where `_input` begins in all that was fed."""
        self._tail = self._build_silence(self._hop)
        """The second half of the latest window, which overlaps the next one."""
        self._last: int | None = None
        """Where the latest window was taken."""
        self._windows = 0
        self._consumed = 0
        self._given = 0

    def feed(self, samples: Samples) -> Samples:
        """Add samples; returns the output that is ready, which may be empty."""
        self._consumed += len(samples)
        # A single not-a-number would spoil the choice of every later window.
        self._input = np.concatenate([self._input, np.nan_to_num(samples)], dtype=np.float32)
        return self._count(self._overlap_ready_windows())

    def finish(self) -> Samples:
        """The rest of the output; call this last. The whole output is as long as the whole input,
        divided by the factor."""
        missing = round(self._consumed / self._factor) - self._given
        given = self._build_silence(0)
        while len(given) < missing:
            silence = self._build_silence(2 * (self._hop + self._reach))
            self._input = np.concatenate([self._input, silence])
            given = np.concatenate([given, self._overlap_ready_windows()])
        return self._count(given[:missing])

    def _count(self, given: Samples) -> Samples:
        self._given += len(given)
        return given

    def _overlap_ready_windows(self) -> Samples:
        """The output up to the middle of each window that has enough input."""
        given = [self._build_silence(0)]
        while self._find_needed_end() <= self._start + len(self._input):
            centre, first = self._find_centre(), self._last is None
            at = centre - self._hop if first else self._find_best(centre - self._hop)
            laid = self._read_samples(at, 2 * self._hop) * self._window
            if not first:
                given.append(self._tail + laid[: self._hop])
            self._tail, self._last = laid[self._hop :], at
            self._windows += 1
            self._forget()
        return np.concatenate(given)

    def _find_centre(self) -> int:
        """The centre of the next window, before it is shifted."""
        return round(self._windows * self._hop * self._factor)

    def _find_needed_end(self) -> int:
        """Where the input ends that choosing the next window needs."""
        follows = 0 if self._last is None else self._last + 3 * self._hop
        return max(self._find_centre() + self._hop + self._reach, follows)

    def _find_best(self, wanted: int) -> int:
        """The position within reach where the sound is most like what followed the latest
        window."""
        assert self._last is not None
        follows = self._read_mono(self._last + self._hop, 2 * self._hop)
        around = self._read_mono(wanted - self._reach, 2 * (self._hop + self._reach))
        return wanted - self._reach + _find_most_alike(around, follows)

    def _read_mono(self, start: int, length: int) -> NDArray[np.float32]:
        mono: NDArray[np.float32] = self._read_samples(start, length).mean(axis=1)
        return mono

    def _read_samples(self, start: int, length: int) -> Samples:
        return self._input[start - self._start : start - self._start + length]

    def _forget(self) -> None:
        """Drop input that no window can need any more."""
        assert self._last is not None
        needed = min(self._last + self._hop, self._find_centre() - self._hop - self._reach)
        self._input = self._input[max(0, needed - self._start) :]
        self._start = max(self._start, needed)

    def _build_silence(self, samples: int) -> Samples:
        return np.zeros((samples, self._channels), np.float32)


def _find_most_alike(samples: NDArray[np.float32], pattern: NDArray[np.float32]) -> int:
    """The position in the samples, [N], where the pattern fits best, regardless of loudness."""
    products = np.correlate(samples, pattern, mode="valid")
    sums = np.concatenate([np.zeros(1), np.cumsum(samples.astype(np.float64) ** 2)])
    energies = sums[len(pattern) :] - sums[: -len(pattern)]
    return int(np.argmax(products / np.sqrt(energies + _FLOOR * len(pattern))))
