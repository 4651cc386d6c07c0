"""Layers of the Descript Audio Codec (Kumar et al., 2023) and of those built like it, causal, over
[B, L, C].

Letters: B rows, L positions, C channels, I inputs, O outputs, R the rate.
"""

from __future__ import annotations

import torch

from cantata_layers.causal_convolutions import SNAKE_EPS
from cantata_layers.conv_cache import ConvCache
from cantata_layers.linear import Linear
from cantata_layers.weights import Weights


class Snake:
    """x + sin^2(a x) / a with a frequency per channel (Ziyin et al., 2020)."""

    def __init__(self, weights: Weights, name: str, size: int) -> None:
        self._frequency = weights.take(f"{name}.alpha", 1, size, 1).flatten()
        self._inverse = 1.0 / (self._frequency + SNAKE_EPS)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        wave = (x * self._frequency).sin_()
        return wave.mul_(wave).mul_(self._inverse).add_(x)


class CausalDownsample:
    """A convolution with a stride. [B, L * R, I] -> [B, L, O].

    A kernel of R takes each R positions, one of 2R also the R before them.
    """

    def __init__(
        self, weights: Weights, name: str, inputs: int, outputs: int, rate: int, kernel: int
    ) -> None:
        assert kernel in (rate, 2 * rate)
        self._rate, self._reaches_back = rate, kernel > rate
        weight = weights.take(f"{name}.weight", outputs, inputs, kernel)
        rows = weight.transpose(1, 2).reshape(outputs, kernel * inputs)
        self._product = Linear(rows, weights.take(f"{name}.bias", outputs))

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = x.reshape(x.shape[0], x.shape[1] // self._rate, -1)
        if self._reaches_back:
            x = torch.cat([past.extend(x, 1)[:, :-1], x], dim=-1)
        return self._product(x)
