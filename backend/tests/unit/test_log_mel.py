"""Features of a sound, against transformers' extractor."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.model.log_mel import HOP, log_mel


@pytest.mark.parametrize("mel_bins", [80, 128])
def test_features_are_whispers(mel_bins: int) -> None:
    from transformers import WhisperFeatureExtractor

    rng = np.random.default_rng(1)
    seconds = 2
    time_s = np.arange(seconds * SPEECH_RATE) / SPEECH_RATE
    sweep = np.sin(2 * np.pi * (100 + 1900 * time_s) * time_s) + rng.normal(0, 0.01, len(time_s))
    sound = np.concatenate([np.zeros(SPEECH_RATE), 0.2 * sweep]).astype(np.float32)
    theirs = WhisperFeatureExtractor(feature_size=mel_bins, chunk_length=3)(
        sound, sampling_rate=SPEECH_RATE, return_tensors="np"
    ).input_features[0]
    ours = log_mel(sound, mel_bins)
    assert ours.shape == (mel_bins, len(sound) // HOP)
    assert ours.dtype == np.float32
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
