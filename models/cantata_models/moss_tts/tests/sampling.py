"""The published sampling rules in NumPy, from the scores of one level to probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_layers.sampling_settings import SamplingSettings

Floats = NDArray[np.float32]


def penalized(scores: Floats, history: NDArray[Any], penalty: float) -> Floats:
    """Make the codes that this codebook has produced in this request less likely.

    Args:
        scores: [V]
        history: [F] codes of this codebook in the request's frames so far; the prompt has none.
        penalty: 1 changes nothing.
    """
    spoken = np.unique(history)
    scores = scores.astype(np.float32)
    before = scores[spoken]
    scores[spoken] = np.where(before < 0, before * penalty, before / penalty)
    return scores


def probabilities(scores: Floats, settings: SamplingSettings) -> Floats:
    """[V] scores -> [V] probabilities: temperature, then top-k, then top-p of what is left.

    Codes that score the same as the last of the top k are kept too.
    """
    if settings.temperature == 0:
        only: Floats = np.eye(len(scores), dtype=np.float32)[scores.argmax()]
        return only
    scores = scores / np.float32(settings.temperature)
    if 0 < settings.top_k < len(scores):
        least = np.sort(scores)[-settings.top_k]
        scores = np.where(scores < least, -np.inf, scores)
    if settings.top_p < 1:
        order = np.argsort(-scores, kind="stable")
        before = np.cumsum(softmax(scores[order])) - softmax(scores[order])
        scores[order[before > settings.top_p]] = -np.inf
    return softmax(scores)


def softmax(scores: Floats) -> Floats:
    """[V] -> [V]."""
    powers = np.exp(scores - scores.max())
    shares: Floats = powers / powers.sum()
    return shares
