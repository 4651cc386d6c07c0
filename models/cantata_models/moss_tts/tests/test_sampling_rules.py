"""The statement of the sampling rules matches the published code's probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.moss_tts.tests.sampling import penalized, probabilities

GOLDENS = Path(__file__).with_name("goldens") / "sampling.npz"


@pytest.mark.parametrize("model", ["local", "nano"])
def test_probabilities_are_the_published_code_s(model: str) -> None:
    with np.load(GOLDENS) as loaded:
        goldens = dict(loaded)
    cases = zip(
        goldens["scores"],
        goldens["history"],
        goldens["settings"].tolist(),
        goldens[f"{model}/probabilities"],
        strict=True,
    )
    for scores, history, (temperature, top_k, top_p, penalty), wanted in cases:
        settings = SamplingSettings(temperature, int(top_k), round(top_p, 6))
        found = probabilities(penalized(scores, history, round(penalty, 6)), settings)
        assert set(np.flatnonzero(found)) == set(np.flatnonzero(wanted)), settings
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_greedy_takes_the_best_code_after_the_penalty() -> None:
    scores = np.array([2.0, 1.9, -1.0], np.float32)
    greedy = SamplingSettings(0.0, 0, 1.0)
    assert probabilities(scores, greedy).tolist() == [1, 0, 0]
    assert probabilities(penalized(scores, np.array([0]), 1.2), greedy).tolist() == [0, 1, 0]
    assert penalized(scores, np.array([2, 2]), 2.0).tolist() == pytest.approx([2.0, 1.9, -2.0])
