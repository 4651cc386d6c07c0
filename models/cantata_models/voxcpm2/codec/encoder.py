"""Encodes recordings to patches of latents.

Letters: N samples, K patches, E numbers of a patch, L positions, C channels.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.causal_convolutions import CausalConv
from cantata_layers.conv_cache import ConvCache
from cantata_layers.descript_codec import CausalDownsample, Snake
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.voxcpm2.codec.config import load_codec_config
from cantata_models.voxcpm2.codec.layers import (
    UNIT_KERNEL,
    NormalisedWeights,
    load_units,
)

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
        self, checkpoint: Path, device: torch.device, read: ReadWeights = NormalisedWeights
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
