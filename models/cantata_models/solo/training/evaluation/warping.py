"""Dynamic time warping: matches the moments of two readings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cantata_models.solo.training.evaluation.acoustics import Analysis, Rows

DISTORTION_CEPSTRA = 13
TO_DB = 10 * math.sqrt(2) / math.log(10)

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Warp:
    """The cheapest path through two readings, with P steps."""

    ours: Places
    """[P] hops of our reading, non-decreasing."""
    theirs: Places
    """[P] hops of the other reading, non-decreasing."""
    cost_db: Rows
    """[P]: mel-cepstral distance at each step."""

    @property
    def distortion_db(self) -> float:
        """Mean mel-cepstral distortion along the path."""
        return float(self.cost_db.mean())


def accumulate(distance: Rows) -> Rows:
    """[A, B] distances -> [A + B - 1, A + 1] cheapest sums, one row per anti-diagonal.

    Row k, column i + 1 holds the cheapest cost to reach (i, k - i). The cells of an anti-diagonal
    depend only on the two anti-diagonals before it, so each is one vector operation.
    """
    rows, columns = distance.shape
    total = np.full((rows + columns - 1, rows + 1), np.inf)
    total[0, 1] = distance[0, 0]
    for k in range(1, rows + columns - 1):
        i = np.arange(max(0, k - columns + 1), min(k, rows - 1) + 1)
        cheapest = np.minimum(total[k - 1, i], total[k - 1, i + 1])
        if k > 1:
            cheapest = np.minimum(cheapest, total[k - 2, i])
        total[k, i + 1] = cheapest + distance[i, k - i]
    return total


def warp_path(distance: Rows) -> tuple[Places, Places]:
    """[A, B] distances -> the two index rows of the cheapest corner-to-corner path."""
    total = accumulate(distance)
    i, j = distance.shape[0] - 1, distance.shape[1] - 1
    path = [(i, j)]
    while i or j:
        k = i + j
        steps = [
            (float(total[k - 2, i]) if i and j else math.inf, i - 1, j - 1),
            (float(total[k - 1, i]) if i else math.inf, i - 1, j),
            (float(total[k - 1, i + 1]) if j else math.inf, i, j - 1),
        ]
        _, i, j = min(steps, key=lambda step: step[0])
        path.append((i, j))
    ours, theirs = np.array(path[::-1]).T
    return ours, theirs


def warp(ours: Analysis, theirs: Analysis) -> Warp:
    """Aligns two readings of one sentence by their mel cepstra."""
    a, b = ours.cepstra[:, :DISTORTION_CEPSTRA], theirs.cepstra[:, :DISTORTION_CEPSTRA]
    squared = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    distance = np.sqrt(np.maximum(squared, 0)) * TO_DB
    i, j = warp_path(distance)
    return Warp(i, j, distance[i, j])
