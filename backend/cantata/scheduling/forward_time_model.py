"""The time of a denoiser's forwards, fitted to its past ones: t = a + b tokens + c pairs.

Other work on the machine slows all forwards alike and hardly changes how their time grows with
their size. So two things are fitted: the shape, slowly, and the speed, by the latest forwards.
Nothing here knows a model or reads a clock: times come in as numbers.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost

_KEPT = 0.99
"""Factor on the weight of earlier forwards in the shape, at each new one of about their size. Those
of other sizes keep theirs: an answer's thousands of single tokens cannot tell a fixed part from one
that grows with the tokens, and must not hide the pictures that can."""
_NEW_SPEED = 0.2
"""Weight of the latest forward in the speed."""
_MAX_NEWS = 3.0
"""A forward counts as at most this many times as slow as expected: a thread that once waited for a
processor is not slow."""
_SETTLING = 2
"""Number of first forwards of a process that are not counted: they load kernels and memory."""
_DOUBT = 1e-3
"""Weight of the assumption, before forwards of several sizes were seen, that all time grows with
the tokens. Admission promises only what was measured."""


class ForwardTimeModel:
    """Fits t to the forwards."""

    def __init__(self) -> None:
        self._seen = 0
        self._speed = 1.0
        """How many times as long as the shape predicts the latest forwards took."""
        self._unit = np.ones(3)
        """A typical forward: its fixed part (1), tokens, pairs. The fit is in these units, which
        keeps it well conditioned."""
        self._matrices: dict[int, NDArray[np.float64]] = {}
        self._vectors: dict[int, NDArray[np.float64]] = {}
        """By the length of the number of tokens in bits."""
        self._shape = np.zeros(3)
        """Seconds of each part of a typical forward."""

    @property
    def cost(self) -> ForwardCost | None:
        """The fit; None before a forward was measured."""
        if not self._shape.any():
            return None
        fixed_s, token_s, pair_s = (self._shape * self._speed / self._unit).tolist()
        return ForwardCost(fixed_s, token_s, pair_s)

    @property
    def typical(self) -> ForwardSize:
        """The size of the first forward that was measured."""
        _, tokens, pairs = self._unit.tolist()
        return ForwardSize(round(tokens), round(pairs))

    def measure(self, size: ForwardSize, seconds: float) -> None:
        """Take a forward into account."""
        self._seen += 1
        if self._seen <= _SETTLING or seconds <= 0:
            return
        parts = np.array([1.0, size.tokens, size.pairs])
        if not self._shape.any():
            self._begin(parts, seconds)
        expected_s = float(self._shape @ (parts / self._unit)) * self._speed
        took_s = min(seconds, _MAX_NEWS * expected_s)
        self._speed += _NEW_SPEED * (took_s / expected_s - 1.0) * self._speed
        self._learn(size.tokens.bit_length(), parts / self._unit, took_s / self._speed)

    def _begin(self, parts: NDArray[np.float64], seconds: float) -> None:
        self._unit = np.maximum(parts, 1.0)
        self._shape = np.array([0.0, seconds, 0.0])

    def _learn(self, group: int, parts: NDArray[np.float64], seconds: float) -> None:
        """Update the shape. Relative deviations count alike in short forwards and in long ones. As
        the speed's, they are from what was expected: else noise would make one rise and the other
        fall."""
        weight = 1.0 / float(self._shape @ parts) ** 2
        scale = float(self._shape.sum()) ** 2
        earlier = self._matrices.get(group, np.zeros((3, 3))), self._vectors.get(group, np.zeros(3))
        self._matrices[group] = _KEPT * earlier[0] + scale * weight * np.outer(parts, parts)
        self._vectors[group] = _KEPT * earlier[1] + scale * weight * seconds * parts
        # The assumption does not fade: it decides what no forward has shown.
        matrix = np.sum(list(self._matrices.values()), 0) + _DOUBT * np.eye(3)
        assumed = np.array([0.0, float(self._shape.sum()), 0.0])
        vector = np.sum(list(self._vectors.values()), 0) + _DOUBT * assumed
        self._shape = _fit_not_negative(matrix, vector)


def _fit_not_negative(
    matrix: NDArray[np.float64], vector: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The x >= 0 with the least x'Mx - 2v'x: the best of the solutions with some parts zero."""
    best, least = np.zeros(3), 0.0
    for count in (1, 2, 3):
        for kept in combinations(range(3), count):
            index = list(kept)
            solved = np.linalg.solve(matrix[np.ix_(index, index)], vector[index])
            if (solved < 0).any():
                continue
            value = float(-solved @ vector[index])
            if value < least:
                best, least = np.zeros(3), value
                best[index] = solved
    return best
