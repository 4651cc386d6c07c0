"""Encodes a reference recording for the talker: a speaker vector and frames of codes.

The encoders are loaded with the talker. Results are cached by content, so that a voice in frequent
use is encoded once.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.qwen3_tts.codec.encoder import load_encoder
from cantata_models.qwen3_tts.speaker_encoder import load_speaker_encoder

KEPT = 64
"""Number of recordings in the cache; half a megabyte at most."""


@dataclass(slots=True)
class EncodedReference:
    """The encodings of one recording."""

    speaker: torch.Tensor
    """[D] float32."""
    frames: torch.Tensor | None = None
    """[T, Q] int64; None until a request continues the recording."""


class ReferenceEncoder:
    """Encodes 24 kHz recordings with a checkpoint's own encoders."""

    def __init__(self, checkpoint: Path) -> None:
        self._speaker_encoder = load_speaker_encoder(checkpoint)
        self._codec_encoder = load_encoder(checkpoint)
        self._kept: OrderedDict[bytes, EncodedReference] = OrderedDict()

    def encode(self, samples: NDArray[np.float32], *, frames: bool) -> EncodedReference:
        """Encode [N] samples at 24 kHz to a speaker vector and, with `frames`, to codes."""
        key = hashlib.sha256(samples.tobytes()).digest()
        sound = torch.from_numpy(samples)
        encoded = self._kept.pop(key, None)
        if encoded is None:
            encoded = EncodedReference(self._speaker_encoder.embed(sound))
        if frames and encoded.frames is None:
            encoded.frames = self._codec_encoder.encode(sound)
        self._kept[key] = encoded
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return encoded
