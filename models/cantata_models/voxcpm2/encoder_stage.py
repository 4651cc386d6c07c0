"""The encoder stage: from a recording to patches of latents.

A recording is resampled here, not where requests are built, so one that is known already costs
nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import soxr
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError
from cantata_models.voxcpm2.codec.encoder import SoundEncoder
from cantata_models.voxcpm2.inputs import EncoderInput


class RecordingEncoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, encoder: SoundEncoder) -> None:
        self._encoder = encoder

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of the samples, their rate and what they are for."""
        about = f"{inputs.mode} at {inputs.sample_rate}".encode()
        return hashlib.sha256(about + inputs.samples.tobytes()).digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [{"latents": Rows(self._encode(inputs))} for inputs in batch]

    def _encode(self, inputs: EncoderInput) -> NDArray[np.float32]:
        """[K, E]: what stands in front of the text, then what stands behind it."""
        sound = resampled(inputs.samples, inputs.sample_rate, self._encoder.sample_rate)
        # What follows a recording is to follow its last sample, so silence goes in front of it.
        places = [False] * inputs.mode.imitates + [True] * inputs.mode.continues
        parts = [filled_up(sound, self._encoder.samples_per_patch, in_front=at) for at in places]
        encoded = [self._encoder.encode(torch.from_numpy(part)) for part in parts]
        latents: NDArray[np.float32] = torch.cat(encoded).numpy()
        return latents


def filled_up(sound: NDArray[np.float32], unit: int, *, in_front: bool) -> NDArray[np.float32]:
    """Return [N] samples with silence in front or behind, up to a multiple of the unit."""
    silence = np.zeros(-len(sound) % unit, np.float32)
    return np.concatenate([silence, sound] if in_front else [sound, silence])


def resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    """Resample as the library that the published program reads recordings with (librosa).

    Args:
        samples: [N].
        rate: Hz.
        wanted: Hz.

    Returns:
        [N * wanted / rate], rounded up.
    """
    if rate == wanted:
        return np.ascontiguousarray(samples, np.float32)
    length = math.ceil(len(samples) * wanted / rate)
    output = np.asarray(soxr.resample(samples, rate, wanted), np.float32)[:length]
    return np.pad(output, (0, length - len(output)))


def load_encoder(checkpoint: Path, device: torch.device) -> RecordingEncoder:
    """Return a checkpoint's encoder in fp32.

    Raises:
        ConfigError: the checkpoint lacks weights of it.
    """
    return RecordingEncoder(SoundEncoder(checkpoint, device))
