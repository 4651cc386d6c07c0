"""Makes the extractor of log-mel spectrograms that Whisper has, and audio encoders like its."""

from __future__ import annotations

from typing import Any, Literal

from transformers import WhisperFeatureExtractor

from cantata_layers.omni.preprocessor_config import RATE

HOP = 160
"""Samples of a mel frame."""


def make_mel_extractor(mel_bins: int, padding_side: Literal["left", "right"] = "right") -> Any:
    """transformers' own, for mono sound at `RATE`; recordings are filled up on `padding_side`."""
    extractor: Any = WhisperFeatureExtractor  # its signatures are too narrow
    return extractor(
        feature_size=mel_bins,
        sampling_rate=RATE,
        hop_length=HOP,
        dither=0.0,
        padding_side=padding_side,
    )
