"""Speakers are told apart, as a spoken consent needs it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import soundfile

from cantata_layers.speaker_features import are_alike, speaker_vector

VOICES = Path(__file__).parents[3] / "docs" / "voice"


def test_halves_of_a_reading_are_alike_and_voices_are_not() -> None:
    vectors = {}
    for path in sorted(VOICES.glob("*.mp3")):
        sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
        middle = len(sound) // 2
        halves = (sound[:middle, 0], sound[middle:, 0] * np.float32(0.3))
        vectors[path.stem] = [speaker_vector(half, rate) for half in halves]
    assert len(vectors) == 4
    for name, (first, second) in vectors.items():
        assert are_alike(first, second), name
    for one, other in combinations(vectors, 2):
        assert not are_alike(vectors[one][0], vectors[other][1]), (one, other)
