"""The encoder stage: from a recording to patches of latents.

A recording is resampled here, not where requests are built, so one that is known already costs
nothing.

Letters: N samples, K patches, E numbers of a patch, L positions, C channels.
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
from cantata_layers.causal_convolutions import CausalConv, CausalDownsample, ConvCache, Snake
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.voxcpm2.codec import UNIT_KERNEL, NormalizedWeights, load_units
from cantata_models.voxcpm2.config import load_codec_config
from cantata_models.voxcpm2.prompt import VoxCpm2EncoderInput

MEAN_KERNEL = 3
BLOCK_PATCHES = 8
"""Encoded at a time, with the state carried over: a long recording needs no more memory."""


class RateStage:
    """Units with three dilations, then a lower rate and twice the channels."""

    def __init__(self, weights: Weights, name: str, size: int, rate: int) -> None:
        self._units = load_units(weights, name, 0, size)
        self._snake = Snake(weights, f"{name}.block.3", size)
        self._down = CausalDownsample(weights, f"{name}.block.4", size, 2 * size, rate, 2 * rate)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        for unit in self._units:
            x = unit(x, past)
        return self._down(self._snake(x), past)


class SoundEncoder:
    """The encoder of a checkpoint, in fp32; its latents are the means, without noise.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    def __init__(
        self, checkpoint: Path, device: torch.device, read: ReadWeights = NormalizedWeights
    ) -> None:
        config = load_codec_config(checkpoint)
        self.sample_rate = config.input_rate
        self.samples_per_patch = config.input_samples
        self._latent_dim, self._patch_size = config.latent_dim, config.patch_size
        self._device = device
        weights = read(checkpoint, "encoder.", device)
        size = config.encoder_dim
        self._widen = CausalConv(weights, "block.0", 1, size, UNIT_KERNEL)
        self._stages = [
            RateStage(weights, f"block.{number}", size << (number - 1), rate)
            for number, rate in enumerate(config.encoder_rates, start=1)
        ]
        widest = size << len(self._stages)
        self._mean = CausalConv(weights, "fc_mu", widest, config.latent_dim, MEAN_KERNEL)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a recording.

        Args:
            samples: [N] float32, whole patches.

        Returns:
            [K, E] float32 on the CPU.
        """
        blocks = torch.split(samples.to(self._device), BLOCK_PATCHES * self.samples_per_patch)
        start, histories = torch.zeros(1, dtype=torch.int64, device=self._device), None
        latents = []
        for block in blocks:
            past = ConvCache(start, histories)
            x = self._widen(block.view(1, -1, 1), past)
            for stage in self._stages:
                x = stage(x, past)
            latents.append(self._mean(x, past)[0])
            histories = past.extended
        return torch.cat(latents).view(-1, self._patch_size * self._latent_dim).cpu()


class VoxCpm2Encoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, encoder: SoundEncoder) -> None:
        self._encoder = encoder

    def key(self, inputs: VoxCpm2EncoderInput) -> bytes:
        """Hash of the samples, their rate and what they are for."""
        about = f"{inputs.mode} at {inputs.sample_rate}".encode()
        return hashlib.sha256(about + inputs.samples.tobytes()).digest()

    def run(
        self, batch: Sequence[VoxCpm2EncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [{"latents": Rows(self._encode(inputs))} for inputs in batch]

    def _encode(self, inputs: VoxCpm2EncoderInput) -> NDArray[np.float32]:
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


def load_encoder(checkpoint: Path, device: torch.device) -> VoxCpm2Encoder:
    """Return a checkpoint's encoder in fp32. Raises ConfigError: the checkpoint lacks weights of
    it."""
    return VoxCpm2Encoder(SoundEncoder(checkpoint, device))
