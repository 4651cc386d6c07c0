"""Speaker vectors of every training speaker, one per measured reading."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import soundfile
import torch

from cantata_layers.speaker_features import Vector, speaker_vector
from cantata_layers.training.progress import tracked
from cantata_models.solo.training.audio import TrainingUtterance
from cantata_models.solo.training.speakers import SPEAKERS, STOCK_SPEAKERS

READINGS = 60
"""Most readings used per speaker."""
MIN_SECONDS = 2.0
PACES = (0.8, 1.25)
"""Slower or faster readings are not used."""
OWN_SHARE = 0.6
"""Share of draws that give a stock voice its mean vector, as in serving, not that of a reading."""
NOISE = 0.1
"""Standard deviation of noise on each normalized feature, so that no speaker is memorised."""


class SpeakerVectors:
    """Vectors by speaker name.

    Args:
        vectors: name -> [n, F] float32, n >= 1.
    """

    def __init__(self, vectors: dict[str, torch.Tensor]) -> None:
        self._vectors = vectors
        means = torch.stack([rows.mean(dim=0) for rows in vectors.values()])
        self.mean = means.mean(dim=0)
        self.std = means.std(dim=0, correction=0).clamp(min=0.02)
        self.stock = torch.stack(
            [vectors[s.name].mean(dim=0) for s in STOCK_SPEAKERS if s.name in vectors]
        )
        """[V, F], in the order of the published voices."""

    def __contains__(self, name: str) -> bool:
        return name in self._vectors

    def draw(self, name: str) -> torch.Tensor:
        """Returns [F]: a vector that a request for this speaker might use."""
        rows = self._vectors[name]
        if SPEAKERS[name].stock and torch.rand(()) < OWN_SHARE:
            return rows.mean(dim=0)
        row = rows[int(torch.randint(len(rows), ()))]
        return row + NOISE * self.std * torch.randn_like(row)


def _vector(path: Path) -> Vector:
    samples, rate = soundfile.read(path, dtype="float32")
    return speaker_vector(samples, rate)


def speaker_vectors(
    utterances: Sequence[TrainingUtterance], cache: Path, workers: int
) -> SpeakerVectors:
    """Measures some readings of every speaker; the result is kept in `cache`."""
    if cache.exists():
        return SpeakerVectors(torch.load(cache))
    chosen: dict[str, list[Path]] = {}
    for item in utterances:
        paths = chosen.setdefault(item.speaker.name, [])
        usual = PACES[0] <= item.rate <= PACES[1]
        if len(paths) < READINGS and usual and item.done and _long_enough(item.path):
            paths.append(item.path)
    jobs = [(name, path) for name, paths in chosen.items() for path in paths]
    rows: dict[str, list[Vector]] = {}
    with ProcessPoolExecutor(workers) as pool:
        measured = pool.map(_vector, [path for _, path in jobs], chunksize=16)
        for (name, _), vector in zip(jobs, tracked(measured, len(jobs), "speakers"), strict=True):
            rows.setdefault(name, []).append(vector)
    vectors = {name: torch.from_numpy(np.stack(found)) for name, found in rows.items()}
    torch.save(vectors, cache)
    return SpeakerVectors(vectors)


def _long_enough(path: Path) -> bool:
    return float(soundfile.info(path).duration) >= MIN_SECONDS
