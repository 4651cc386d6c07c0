"""A speaker embedding that is independent of the synthesizer.

It holds the mean and spread of the mel cepstra of voiced hops, and of log pitch. Each number is
measured in units of its usual spread between sentences of one teacher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cantata_models.solo.training.evaluation.acoustics import CEPSTRA, Analysis, Rows

EMBEDDING_SIZE = 2 * CEPSTRA + 2


def embedding(analysis: Analysis) -> Rows:
    """Returns [42] float64, zeros if no hop is voiced."""
    voiced = analysis.pitch_hz > 0
    if not voiced.any():
        return np.zeros(EMBEDDING_SIZE)
    rows, log_pitch = analysis.cepstra[voiced], np.log(analysis.pitch_hz[voiced])
    melody = [np.median(log_pitch), log_pitch.std()]
    return np.concatenate([rows.mean(axis=0), rows.std(axis=0), melody])


def usual_spread(groups: Sequence[Rows]) -> Rows:
    """Returns [42]: the standard deviation within groups of [n, 42] embeddings."""
    inner = np.concatenate([rows - rows.mean(axis=0) for rows in groups])
    spread: Rows = np.maximum(inner.std(axis=0), 1e-3)
    return spread


def distance(one: Rows, other: Rows, spread: Rows) -> float:
    """Returns the root mean square difference in units of `spread`."""
    return float(np.sqrt(np.square((one - other) / spread).mean()))


def nearest(row: Rows, centres: Mapping[str, Rows], spread: Rows) -> str:
    """Returns the name of the nearest centre."""
    return min(centres, key=lambda name: distance(row, centres[name], spread))
