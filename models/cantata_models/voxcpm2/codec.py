"""Decodes patches of latents to sound: causal, with explicit streaming state per slot.

No layer looks ahead, so every patch yields its samples at once, and streaming gives the same result
as decoding the whole. All convolutions are causal and their weights normalized: a tensor of
directions and one of lengths each (Salimans & Kingma 2016).

Letters: B rows, T patches, E numbers of a patch, L positions, C channels, K the kernel.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.causal_convolutions import (
    DILATIONS,
    CausalConv,
    CausalUpsample,
    ConvCache,
    Snake,
)
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.voxcpm2.config import STEM, load_codec_config

UNIT_KERNEL = 7


class NormalizedWeights(Weights):
    """Hands out weights as convolutions multiply them.

    Raises:
        ConfigError: (on construction) as `read_tensors`.
    """

    def __init__(self, checkpoint: Path, prefix: str, device: torch.device) -> None:
        super().__init__(checkpoint, prefix, device, stem=STEM)

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """Take a tensor, as `Weights.take`; of a normalized weight, the product of length and
        direction."""
        if f"{name}_v" not in self._tensors:
            return super().take(name, *shape)
        direction = super().take(f"{name}_v", *shape)
        length = super().take(f"{name}_g", shape[0], *(1 for _ in shape[1:]))
        return torch.as_tensor(torch._weight_norm(direction, length, 0))


class PerChannelConv:
    """A convolution of each channel by itself. [B, L, C] -> [B, L, C]."""

    def __init__(
        self, weights: Weights, name: str, size: int, kernel: int, dilation: int = 1
    ) -> None:
        taps = weights.take(f"{name}.weight", size, 1, kernel)
        self._taps, self._dilation = taps[:, 0].t().contiguous(), dilation
        self._bias = weights.take(f"{name}.bias", size)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        length = x.shape[1]
        context = past.extend(x, (len(self._taps) - 1) * self._dilation)
        # One tap after the other: the order of the sum is fixed.
        total = self._bias.expand_as(x)
        for number, tap in enumerate(self._taps):
            start = number * self._dilation
            total = torch.addcmul(total, context[:, start : start + length], tap)
        return total


class DepthwiseUnit:
    """Snake, dilated depthwise convolution, snake, product and a residual connection."""

    def __init__(self, weights: Weights, name: str, size: int, dilation: int) -> None:
        self._first_snake = Snake(weights, f"{name}.block.0", size)
        self._dilated = PerChannelConv(weights, f"{name}.block.1", size, UNIT_KERNEL, dilation)
        self._second_snake = Snake(weights, f"{name}.block.2", size)
        self._pointwise = CausalConv(weights, f"{name}.block.3", size, size, 1)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        update = self._dilated(self._first_snake(x), past)
        return x + self._pointwise(self._second_snake(update), past)


def load_units(weights: Weights, name: str, first: int, size: int) -> list[DepthwiseUnit]:
    """Return a stage's units; the first is its layer of that number."""
    return [
        DepthwiseUnit(weights, f"{name}.block.{first + index}", size, dilation)
        for index, dilation in enumerate(DILATIONS)
    ]


class RateScale:
    """Scales and shifts every channel by the rate of what is decoded. [B, L, C] -> [B, L, C]."""

    def __init__(self, weights: Weights, name: str, size: int, rows: int, row: int) -> None:
        self._scale = weights.take(f"{name}.scale_embed.weight", rows, size)[row].clone()
        self._bias = weights.take(f"{name}.bias_embed.weight", rows, size)[row].clone()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * self._scale + self._bias


class VoxCpm2WaveStage:
    """Raises the rate, halves the channels, then applies units with three dilations."""

    def __init__(self, weights: Weights, name: str, size: int, rate: int) -> None:
        half = size // 2
        self._snake = Snake(weights, f"{name}.block.0", size)
        self._upsample = CausalUpsample(weights, f"{name}.block.1", size, half, rate, 2 * rate)
        self._units = load_units(weights, name, 2, half)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(self._snake(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class SoundDecoder(CausalDecoder):
    """The published codec as a decoder of latents.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    recordable = True
    channels = 1

    def __init__(
        self, checkpoint: Path, device: torch.device, read: ReadWeights = NormalizedWeights
    ) -> None:
        config = load_codec_config(checkpoint)
        self.sample_rate = config.sample_rate
        self.samples_per_frame = config.samples_per_patch
        self.latent_size = config.patch_size * config.latent_dim
        self._patch_size = config.patch_size
        super().__init__(torch.zeros(1, 1, self.latent_size, device=device))
        weights = read(checkpoint, "decoder.", device)
        latent, size = config.latent_dim, config.decoder_dim
        self._mix = PerChannelConv(weights, "model.0", latent, UNIT_KERNEL)
        self._widen = CausalConv(weights, "model.1", latent, size, 1)
        self._stages: list[tuple[RateScale | None, VoxCpm2WaveStage]] = []
        for number, rate in enumerate(config.decoder_rates):
            layer, width = number + 2, size >> number
            scale = None
            if config.rate_buckets is not None and config.rate_row is not None:
                rows = len(config.rate_buckets) + 1
                name = f"sr_cond_model.{layer}"
                scale = RateScale(weights, name, width, rows, config.rate_row)
            self._stages.append((scale, VoxCpm2WaveStage(weights, f"model.{layer}", width, rate)))
        last, narrow = len(self._stages) + 2, size >> len(self._stages)
        self._snake = Snake(weights, f"model.{last}", narrow)
        self._wave = CausalConv(weights, f"model.{last + 1}", narrow, 1, UNIT_KERNEL)

    def _run(self, patches: torch.Tensor, past: ConvCache) -> torch.Tensor:
        rows, frames, _ = patches.shape
        x = self._mix(patches.view(rows, frames * self._patch_size, -1), past)
        x = self._widen(x, past)
        for scale, stage in self._stages:
            x = stage(x if scale is None else scale(x), past)
        return self._wave(self._snake(x), past).tanh()
