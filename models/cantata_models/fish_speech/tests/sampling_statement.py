"""How codes are drawn, in NumPy and float64.

A uniform number goes through the inverse CDF over the codes from the most likely down, as the
server draws every code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-5
"""A uniform number this close to the edge between two codes may fall on either side, and so may a
sum of probabilities beside top-p."""
Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class How:
    """Settings of a draw."""

    temperature: float
    top_p: float
    top_k: int = 0


def distribution(scores: Scores, how: How, slack: float = 0.0) -> tuple[NDArray[np.int64], Scores]:
    """The codes that are left from the most likely down, and their probabilities."""
    order = np.argsort(-scores, kind="stable")
    plain = np.exp(scores[order] - scores.max())
    plain /= plain.sum()
    left = [
        place
        for place, total in enumerate(plain.cumsum())
        if place == 0 or (total <= how.top_p + slack and (how.top_k == 0 or place < how.top_k))
    ]
    kept = scores[order[left]] / how.temperature
    weights = np.exp(kept - kept.max())
    return order[left], weights / weights.sum()


def choices(scores: Scores, uniform: float, how: How) -> set[int]:
    """The codes that may be drawn under different rounding."""
    if how.temperature == 0:
        return {int(scores.argmax())}
    found = set()
    for slack in (-ROUNDING, 0.0, ROUNDING):
        order, weights = distribution(scores, how, slack)
        for shift in (-ROUNDING, 0.0, ROUNDING):
            place = int((weights.cumsum() <= uniform + shift).sum())
            found.add(int(order[min(place, len(order) - 1)]))
    return found


def s2_choices(
    scores: Scores, uniforms: Sequence[float], how: How, spoken: Sequence[int], end: int
) -> set[int]:
    """The codes 0 that S2 may draw.

    Args:
        scores: [V].
        uniforms: of the draw and of the second one.
        how: the first draw's settings.
        spoken: codes 0 of all frames so far; the first frame's never counts.
        end: the code that ends speech.
    """
    recent = spoken[1:][-10:]
    found = set()
    for code in choices(scores, uniforms[0], how):
        if how.temperature > 0 and code != end and code in recent:
            found |= choices(scores, uniforms[1], How(1.0, 0.9, how.top_k))
        else:
            found.add(code)
    return found


def penalized(scores: Scores, codes: set[int], penalty: float) -> Scores:
    """Scores less likely for these codes."""
    changed = scores.copy()
    for code in codes:
        changed[code] = scores[code] / penalty if scores[code] > 0 else scores[code] * penalty
    return changed
