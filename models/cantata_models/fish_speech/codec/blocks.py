"""The Descript Audio Codec's blocks (Kumar et al., 2023), causal, over [B, L, C].

Letters: B rows, L positions, C channels, I inputs, O outputs, R the rate.
"""

from __future__ import annotations

import torch

from cantata_layers.causal_convolutions import DILATIONS, CausalConv, CausalUpsample
from cantata_layers.conv_cache import ConvCache
from cantata_layers.descript_codec import CausalDownsample, Snake
from cantata_layers.weights import Weights


class ResidualUnit:
    """Snake, dilated convolution, snake, pointwise convolution and a residual connection."""

    def __init__(self, weights: Weights, name: str, size: int, dilation: int) -> None:
        name = f"{name}.block"
        self._first_snake = Snake(weights, f"{name}.0", size)
        self._dilated = CausalConv(weights, f"{name}.1.conv", size, size, 7, dilation)
        self._second_snake = Snake(weights, f"{name}.2", size)
        self._pointwise = CausalConv(weights, f"{name}.3.conv", size, size, 1)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        update = self._dilated(self._first_snake(x), past)
        return x + self._pointwise(self._second_snake(update), past)


class WaveStage:
    """Raises the rate, narrows, then applies residual units with three dilations."""

    def __init__(self, weights: Weights, name: str, inputs: int, outputs: int, rate: int) -> None:
        name = f"{name}.block"
        self._snake = Snake(weights, f"{name}.0", inputs)
        self._upsample = CausalUpsample(weights, f"{name}.1.conv", inputs, outputs, rate, 2 * rate)
        self._units = [
            ResidualUnit(weights, f"{name}.{index}", outputs, dilation)
            for index, dilation in enumerate(DILATIONS, start=2)
        ]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(self._snake(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class AnalysisStage:
    """Residual units with three dilations, then a lower rate and more channels."""

    def __init__(self, weights: Weights, name: str, inputs: int, outputs: int, rate: int) -> None:
        name = f"{name}.block"
        self._units = [
            ResidualUnit(weights, f"{name}.{index}", inputs, dilation)
            for index, dilation in enumerate(DILATIONS)
        ]
        self._snake = Snake(weights, f"{name}.3", inputs)
        self._downsample = CausalDownsample(
            weights, f"{name}.4.conv", inputs, outputs, rate, 2 * rate
        )

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        for unit in self._units:
            x = unit(x, past)
        return self._downsample(self._snake(x), past)
