"""Features of a sound, against transformers' extractor."""

from __future__ import annotations

import numpy as np
from transformers import WhisperFeatureExtractor

from cantata.speech_input.log_mel import HOP, MEL_BINS, log_mel
from cantata.speech_input.sound import HEARD_RATE


def test_features_are_whispers() -> None:
    rng = np.random.default_rng(1)
    seconds = 2
    time_s = np.arange(seconds * HEARD_RATE) / HEARD_RATE
    sweep = np.sin(2 * np.pi * (100 + 1900 * time_s) * time_s) + rng.normal(0, 0.01, len(time_s))
    sound = np.concatenate([np.zeros(HEARD_RATE), 0.2 * sweep]).astype(np.float32)
    theirs = WhisperFeatureExtractor(feature_size=MEL_BINS, chunk_length=3)(  # type: ignore[no-untyped-call]
        sound, sampling_rate=HEARD_RATE, do_normalize=True, return_tensors="np"
    ).input_features[0]
    ours = log_mel(sound)
    assert ours.shape == (MEL_BINS, len(sound) // HOP)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
