"""The autoencoder's layers over [B, L, C]; what they compute does not depend on how L is chunked.

All convolutions are causal and their weights normalised: a tensor of directions and one of lengths
each (Salimans & Kingma 2016).

Letters: B rows, L positions, C channels, K the kernel.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.causal_convolutions import DILATIONS, CausalConv
from cantata_layers.conv_cache import ConvCache
from cantata_layers.descript_codec import Snake
from cantata_layers.weights import Weights
from cantata_models.voxcpm2.codec.config import STEM

UNIT_KERNEL = 7


class NormalisedWeights(Weights):
    """Hands out weights as convolutions multiply them.

    Raises:
        ConfigError: (on construction) as `read_tensors`.
    """

    def __init__(self, checkpoint: Path, prefix: str, device: torch.device) -> None:
        super().__init__(checkpoint, prefix, device, stem=STEM)

    def take(self, name: str, *shape: int) -> torch.Tensor:
        """As `Weights.take`; of a normalised weight the product of length and direction."""
        if f"{name}_v" not in self._tensors:
            return super().take(name, *shape)
        direction = super().take(f"{name}_v", *shape)
        length = super().take(f"{name}_g", shape[0], *(1 for _ in shape[1:]))
        return torch.as_tensor(torch._weight_norm(direction, length, 0))


class DepthwiseConv:
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
        self._dilated = DepthwiseConv(weights, f"{name}.block.1", size, UNIT_KERNEL, dilation)
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
