"""BigVGAN: a wave from a mel spectrogram (Lee et al., arXiv:2206.04658).

Convolutions, transposed ones that raise the rate, and periodic activations that are computed at
twice the rate, between low-pass filters, so that they add no aliases.

Letters: L positions, C channels, T mel frames, M mels.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from cantata_layers.weights import Weights
from cantata_models.qwen25_omni.config import VocoderConfig

TAPS = 12
"""Of the filters around an activation."""
CUTOFF, TRANSITION = 0.25, 0.3
"""Their pass band and half the width of its edge; 1 is the doubled rate."""
SNAKE_EPS = 1e-9
DECIBELS = 20 / math.log(10)
"""Of a natural logarithm of an amplitude."""
FLOOR_DB = -115.0
REFERENCE_DB = 20.0


def low_pass() -> torch.Tensor:
    """[TAPS] float32: a sinc in Kaiser's window, as wide as `TRANSITION` asks for."""
    half = TAPS // 2
    attenuation = 2.285 * (half - 1) * math.pi * 4 * TRANSITION + 7.95
    # Kaiser's formula for more than 50 dB (Oppenheim & Schafer, Discrete-Time Signal Processing).
    window = np.kaiser(TAPS, 0.1102 * (attenuation - 8.7))
    taps = np.sinc(2 * CUTOFF * (np.arange(-half, half) + 0.5)) * window
    return torch.from_numpy(taps / taps.sum()).float()


class SmoothSnake:
    """x + sin^2(a x) / b at twice the rate, with a and b per channel (Ziyin et al., 2020)."""

    def __init__(self, weights: Weights, name: str, channels: int) -> None:
        self._frequency = weights.take(f"{name}.act.alpha", channels).exp()[:, None]
        size = weights.take(f"{name}.act.beta", channels).exp()[:, None]
        self._inverse = 1.0 / (size + SNAKE_EPS)
        self._taps = low_pass().to(size.device)[None, None]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[C, L] -> [C, L]."""
        channels, length = x.shape
        edge = TAPS // 2 - 1
        wide = functional.pad(x[:, None], (edge, edge), mode="replicate")
        wide = 2 * functional.conv_transpose1d(wide, self._taps, stride=2)
        cut = 2 * edge + edge
        wide = wide[:, 0, cut : cut + 2 * length]
        wide = wide + self._inverse * torch.sin(wide * self._frequency).square()
        wide = functional.pad(wide[:, None], (edge, edge + 1), mode="replicate")
        return functional.conv1d(wide, self._taps, stride=2).view(channels, length)


class Convolution:
    """A convolution that keeps the number of positions. [C, L] -> [C', L]."""

    def __init__(
        self,
        weights: Weights,
        name: str,
        inputs: int,
        outputs: int,
        kernel: int,
        dilation: int = 1,
        *,
        bias: bool = True,
    ) -> None:
        self._weight = weights.take(f"{name}.weight", outputs, inputs, kernel)
        self._bias = weights.take(f"{name}.bias", outputs) if bias else None
        self._dilation, self._padding = dilation, (kernel - 1) * dilation // 2

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return functional.conv1d(
            x[None], self._weight, self._bias, padding=self._padding, dilation=self._dilation
        )[0]


class VocoderResidualBlock:
    """Pairs of activation and convolution, a dilated and a plain one, each pair with a residual."""

    def __init__(
        self, weights: Weights, name: str, channels: int, kernel: int, dilations: tuple[int, ...]
    ) -> None:
        def snake(number: int) -> SmoothSnake:
            return SmoothSnake(weights, f"{name}.activations.{number}", channels)

        self._pairs = [
            (
                snake(2 * index),
                Convolution(
                    weights, f"{name}.convs1.{index}", channels, channels, kernel, dilation
                ),
                snake(2 * index + 1),
                Convolution(weights, f"{name}.convs2.{index}", channels, channels, kernel),
            )
            for index, dilation in enumerate(dilations)
        ]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        for first_snake, dilated, second_snake, plain in self._pairs:
            x = x + plain(second_snake(dilated(first_snake(x))))
        return x


class VocoderStage:
    """Raises the rate, halves the channels, and averages residual blocks of several kernels."""

    def __init__(self, weights: Weights, number: int, config: VocoderConfig) -> None:
        inputs = config.channels >> number
        outputs, kernel = inputs // 2, config.kernels[number]
        self._rate = config.rates[number]
        self._padding = (kernel - self._rate) // 2
        self._weight = weights.take(f"ups.{number}.0.weight", inputs, outputs, kernel)
        self._bias = weights.take(f"ups.{number}.0.bias", outputs)
        kinds = list(zip(config.block_kernels, config.block_dilations, strict=True))
        first = number * len(kinds)
        self._blocks = [
            VocoderResidualBlock(weights, f"resblocks.{index}", outputs, *kind)
            for index, kind in enumerate(kinds, start=first)
        ]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.conv_transpose1d(
            x[None], self._weight, self._bias, stride=self._rate, padding=self._padding
        )[0]
        return torch.stack([block(x) for block in self._blocks]).mean(dim=0)


class Vocoder:
    """[T, M] log-mel -> [T * hop] samples in -1..1, float32.

    Raises:
        ConfigError: (on construction) a tensor is missing or has another shape.
    """

    def __init__(self, weights: Weights, config: VocoderConfig) -> None:
        last = config.channels >> len(config.rates)
        self._into = Convolution(weights, "conv_pre", config.mels, config.channels, 7)
        self._stages = [
            VocoderStage(weights, number, config) for number in range(len(config.rates))
        ]
        self._snake = SmoothSnake(weights, "activation_post", last)
        self._wave = Convolution(weights, "conv_post", last, 1, 7, bias=False)

    def __call__(self, mel: torch.Tensor) -> torch.Tensor:
        decibels = (mel.t() * DECIBELS).clamp(min=FLOOR_DB) - REFERENCE_DB
        x = self._into((2 * (decibels - FLOOR_DB) / -FLOOR_DB - 1).clamp(-1.0, 1.0))
        for stage in self._stages:
            x = stage(x)
        return self._wave(self._snake(x))[0].clamp(-1.0, 1.0)
