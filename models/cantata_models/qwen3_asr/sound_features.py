"""Makes features of the sound that is to be recognised.

Letters: N samples, M mel bins, F mel frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidAudio
from cantata_layers.omni.features import SoundFeatures
from cantata_layers.omni.mel_extractor import HOP, make_mel_extractor
from cantata_layers.omni.preprocessor_config import RATE
from cantata_layers.omni.sound_rows import sound_rows
from cantata_models.qwen3_asr.config import Qwen3AsrConfig

SHORTEST = RATE // 2
"""Samples; the references fill a shorter sound up with zeros."""


class FeatureExtractor:
    """Makes a checkpoint's features. Safe to call from several threads.

    Args:
        config: of the checkpoint.
    """

    def __init__(self, config: Qwen3AsrConfig) -> None:
        self._extractor = make_mel_extractor(config.mel_bins)
        self._longest_s = config.longest_s

    def extract(self, samples: NDArray[np.float32]) -> SoundFeatures:
        """Return the features of a sound; it ends with its last whole mel frame.

        Args:
            samples: [N] mono at `RATE`, in -1..1.

        Raises:
            InvalidAudio: it is too long, has more than one channel, or is not finite.
        """
        if samples.ndim != 1 or len(samples) > self._longest_s * RATE:
            raise InvalidAudio(
                f"the window has {len(samples) / RATE:.2f} s of sound in {samples.ndim} "
                f"dimensions; valid: one dimension, up to {self._longest_s:g} s",
                "file",
            )
        if not np.isfinite(samples).all():
            raise InvalidAudio("the sound has samples that are no numbers", "file")
        padded = np.pad(samples.astype(np.float32), (0, max(0, SHORTEST - len(samples))))
        output = self._extractor(
            padded, sampling_rate=RATE, padding=True, truncation=False, return_tensors="np"
        )
        frames = len(padded) // HOP
        mels = np.ascontiguousarray(output["input_features"][0][:, :frames], np.float32)
        return SoundFeatures(mels, sound_rows(frames))
