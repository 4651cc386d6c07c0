"""Bounds on float32 differences from the reference's goldens, derived from float32 arithmetic.

A sum of K products in another order differs like a random walk, by sqrt(K) roundings of 2^-24.
Noise of that size on the result of every product in the networks usually moves the scores by 2e-5,
and by 4.2e-5 at most (root mean square over a scenario; a single score by up to 6.4e-4). It moves
the samples by 3.7e-6 (a single sample by 2.1e-5). Real CPUs stay within a third of that: AVX-512,
and AVX2 on AMD's CPUs and, emulated, on Intel's, move scores by 1.1e-5 at most (a single score by
1.1e-4) and samples by 1.3e-6 (a single sample by 7.6e-6). The mean is the stricter check: a fault
in the networks moves all scores, unlucky rounding only a few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_models.qwen3_tts.tests.parity.write_goldens import MIN_GAP


@dataclass(frozen=True, slots=True)
class Rounding:
    """The allowed difference between an array and its golden."""

    rms: float
    """Root mean square."""
    worst: float
    """Maximum over single values."""

    def excess(self, ours: NDArray[Any], theirs: NDArray[Any]) -> str:
        """Describe the difference; empty if it is within bounds."""
        with np.errstate(invalid="ignore"):
            apart = np.where(ours == theirs, 0.0, np.abs(ours.astype(np.float64) - theirs))
        rms, worst = float(np.sqrt(np.square(apart).mean())), float(apart.max())
        within = rms <= self.rms and worst <= self.worst
        return "" if within else f"off by {rms:.1e} rms, {worst:.1e} at most"

    def check(self, ours: NDArray[Any], theirs: NDArray[Any]) -> None:
        """Fail if the arrays differ too much."""
        if excess := self.excess(ours, theirs):
            raise AssertionError(f"Not equal within rounding: {excess}")


SCORES = Rounding(rms=5e-5, worst=MIN_GAP / 2)
"""Below half of the goldens' smallest gap between two scores, no choice can change."""
SAMPLES = Rounding(rms=5e-6, worst=2.5e-5)
"""For samples in -1..1."""
