"""Layers that a voice's style adapts: its vector sets the gain and the offset of each channel.

Letters: C channels, T time, S numbers of half a style.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-5
BLOCK_SLOPE = 0.2
_HALF_POWER = 0.5**0.5


class Affine(nn.Module):
    """A gain and an offset of each channel that do not depend on the style. Published checkpoints
    leave them out; they are 1 and 0 then."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))


def measure(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[1, C, T] -> [C] means and [C] variances."""
    mean = x[0].mean(dim=-1)
    # On a CPU, ten times as fast as `torch.var_mean`.
    length = torch.linalg.vector_norm(x[0] - mean[:, None], dim=-1)
    return mean, length.square() / x.shape[-1]


class Moments:
    """Means and variances at every norm, over all parts of a sentence so far: a later part is
    normalised nearly as in the whole sentence, so that its loudness does not jump."""

    def __init__(self) -> None:
        self._known: dict[nn.Module, tuple[int, torch.Tensor, torch.Tensor]] = {}

    def add(self, norm: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take the next part into account.

        Args:
            norm: where it is normalised.
            x: [1, C, T] before that.

        Returns:
            [C] means and [C] variances of all parts.
        """
        count = x.shape[-1]
        mean, variance = measure(x)
        if norm in self._known:
            before, earlier_mean, earlier_variance = self._known[norm]
            total = before + count
            change = mean - earlier_mean
            variance = (
                before * earlier_variance + count * variance + before * count / total * change**2
            ) / total
            mean = earlier_mean + count / total * change
            count = total
        self._known[norm] = (count, mean, variance)
        return mean, variance


class AdaptiveInstanceNorm(nn.Module):
    """[1, C, T] -> the same: each channel is normalised over time, then the style's gain and offset
    apply. T is at least 2."""

    def __init__(self, channels: int, style: int) -> None:
        super().__init__()
        self.norm = Affine(channels)
        self.fc = nn.Linear(style, 2 * channels)

    def forward(
        self, x: torch.Tensor, style: torch.Tensor, moments: Moments | None = None
    ) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S], moments of the parts before; None: x is the whole."""
        gain, offset = self.fc(style)[0].chunk(2)
        gain = 1 + gain
        # Both affine steps in the one pass over the samples.
        weight, bias = gain * self.norm.weight, gain * self.norm.bias + offset
        mean, variance = measure(x) if moments is None else moments.add(self, x)
        return functional.batch_norm(x, mean, variance, weight, bias, eps=EPSILON)


class AdaptiveLayerNorm(nn.Module):
    """[1, T, C] -> the same: each moment is normalised over its channels."""

    def __init__(self, channels: int, style: int) -> None:
        super().__init__()
        self.fc = nn.Linear(style, 2 * channels)

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Args: x [1, T, C], style [1, S]."""
        gain, offset = self.fc(style)[0].chunk(2)
        return functional.layer_norm(x, gain.shape, weight=1 + gain, bias=offset, eps=EPSILON)


class AdaptiveBlock(nn.Module):
    """[1, C, T] -> [1, outputs, T], or 2 T if it upsamples: two convolutions and a residual."""

    def __init__(self, inputs: int, outputs: int, style: int, upsample: bool = False) -> None:
        super().__init__()
        self.norm1 = AdaptiveInstanceNorm(inputs, style)
        self.conv1 = nn.Conv1d(inputs, outputs, 3, padding=1)
        self.norm2 = AdaptiveInstanceNorm(outputs, style)
        self.conv2 = nn.Conv1d(outputs, outputs, 3, padding=1)
        self.pool = (
            nn.ConvTranspose1d(
                inputs, inputs, 3, stride=2, padding=1, output_padding=1, groups=inputs
            )
            if upsample
            else None
        )
        self.conv1x1 = nn.Conv1d(inputs, outputs, 1, bias=False) if inputs != outputs else None

    def forward(self, x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S]."""
        made = functional.leaky_relu(self.norm1(x, style), BLOCK_SLOPE)
        if self.pool is not None:
            made = self.pool(made)
            x = x.repeat_interleave(2, dim=-1)
        made = self.conv1(made)
        made = self.conv2(functional.leaky_relu(self.norm2(made, style), BLOCK_SLOPE))
        if self.conv1x1 is not None:
            x = self.conv1x1(x)
        total: torch.Tensor = (made + x) * _HALF_POWER
        return total


class PeriodicBlock(nn.Module):
    """[1, C, T] -> the same: three residual steps of two convolutions, each behind a norm and a
    periodic activation."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int], style: int) -> None:
        super().__init__()
        count = range(len(dilations))
        self.convs1 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, dilation=wide, padding=wide * (kernel - 1) // 2)
            for wide in dilations
        )
        self.convs2 = nn.ModuleList(
            nn.Conv1d(channels, channels, kernel, padding=(kernel - 1) // 2) for _ in count
        )
        self.adain1 = nn.ModuleList(AdaptiveInstanceNorm(channels, style) for _ in count)
        self.adain2 = nn.ModuleList(AdaptiveInstanceNorm(channels, style) for _ in count)
        self.alpha1 = nn.ParameterList(torch.ones(1, channels, 1) for _ in count)
        self.alpha2 = nn.ParameterList(torch.ones(1, channels, 1) for _ in count)

    def forward(
        self, x: torch.Tensor, style: torch.Tensor, moments: Moments | None = None
    ) -> torch.Tensor:
        """Args: x [1, C, T], style [1, S], moments of the parts before; None: x is the whole."""
        first = zip(self.adain1, self.alpha1, self.convs1, strict=True)
        second = zip(self.adain2, self.alpha2, self.convs2, strict=True)
        for (norm1, alpha1, conv1), (norm2, alpha2, conv2) in zip(first, second, strict=True):
            made = conv1(_oscillate(norm1(x, style, moments), alpha1))
            x = x + conv2(_oscillate(norm2(made, style, moments), alpha2))
        return x


def _oscillate(x: torch.Tensor, alpha: torch.Tensor) -> torch.Tensor:
    """x + sin(alpha x)² / alpha, the activation "snake"."""
    wave = (alpha * x).sin_()
    return torch.addcmul(x, wave, wave / alpha)
