"""ECAPA-TDNN: the vector of a speaker, from a log-mel spectrogram.

Desplanques et al., "ECAPA-TDNN", 2020 (arXiv:2005.07143), in the variant of Qwen's checkpoints: no
batch normalization, reflected edges, and statistics of all frames next to each frame's own values.

Letters: B rows, T frames, M mels, C channels, E vector size.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.ecapa_config import EcapaConfig

VARIANCE_FLOOR = 1e-12


class ReflectConv(nn.Module):
    """A convolution that keeps the number of positions, with reflected edges and a ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.conv = same_conv(inputs, outputs, kernel, dilation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.conv(x))


def same_conv(inputs: int, outputs: int, kernel: int = 1, dilation: int = 1) -> nn.Conv1d:
    """A convolution over [B, C, T] that keeps T."""
    return nn.Conv1d(
        inputs, outputs, kernel, dilation=dilation, padding="same", padding_mode="reflect"
    )


class Res2NetBlock(nn.Module):
    """Channel groups; each group but the first is convolved after adding the previous one."""

    def __init__(self, channels: int, parts: int, kernel: int, dilation: int) -> None:
        super().__init__()
        width = channels // parts
        self.blocks = nn.ModuleList(
            ReflectConv(width, width, kernel, dilation) for _ in range(parts - 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = x.chunk(len(self.blocks) + 1, dim=1)
        output = [parts[0]]
        for index, (block, part) in enumerate(zip(self.blocks, parts[1:], strict=True)):
            output.append(block(part if index == 0 else part + output[-1]))
        return torch.cat(output, dim=1)


class SqueezeExcitation(nn.Module):
    """Scales each channel by a factor computed from the whole recording."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.conv1 = same_conv(channels, squeezed)
        self.conv2 = same_conv(squeezed, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=2, keepdim=True)
        return x * torch.sigmoid(self.conv2(functional.relu(self.conv1(mean))))


class FrameBlock(nn.Module):
    """Pointwise, Res2Net, pointwise, squeeze-excitation and a residual connection."""

    def __init__(self, config: EcapaConfig, index: int) -> None:
        super().__init__()
        channels = config.channels[index]
        self.tdnn1 = ReflectConv(config.channels[index - 1], channels)
        self.res2net_block = Res2NetBlock(
            channels, config.parts, config.kernels[index], config.dilations[index]
        )
        self.tdnn2 = ReflectConv(channels, channels)
        self.se_block = SqueezeExcitation(channels, config.squeezed_channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        update: torch.Tensor = self.se_block(self.tdnn2(self.res2net_block(self.tdnn1(x))))
        return x + update


class AttentiveStatistics(nn.Module):
    """[B, C, T] -> [B, 2C, 1]: mean and deviation over time, weighted by attention per channel."""

    def __init__(self, channels: int, attention_channels: int) -> None:
        super().__init__()
        self.tdnn = ReflectConv(3 * channels, attention_channels)
        self.conv = same_conv(attention_channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        even = torch.full_like(x[:, :1], 1.0 / x.shape[2])
        summary = [part.expand_as(x) for part in self._compute_statistics(x, even)]
        attention = self.conv(torch.tanh(self.tdnn(torch.cat([x, *summary], dim=1))))
        return torch.cat(self._compute_statistics(x, torch.softmax(attention, dim=2)), dim=1)

    @staticmethod
    def _compute_statistics(
        x: torch.Tensor, weight: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mean = (weight * x).sum(dim=2, keepdim=True)
        variance = (weight * (x - mean).square()).sum(dim=2, keepdim=True)
        return mean, variance.clamp(min=VARIANCE_FLOOR).sqrt()


class Ecapa(nn.Module):
    """[B, M, T] -> [B, E]. T must exceed `EcapaConfig.reach`."""

    def __init__(self, config: EcapaConfig) -> None:
        super().__init__()
        channels, last = config.channels, len(config.channels) - 1
        first = ReflectConv(config.mels, channels[0], config.kernels[0], config.dilations[0])
        frames = (FrameBlock(config, index) for index in range(1, last))
        self.blocks = nn.ModuleList([first, *frames])
        self.mfa = ReflectConv(
            sum(channels[1:last]), channels[last], config.kernels[last], config.dilations[last]
        )
        self.asp = AttentiveStatistics(channels[last], config.attention_channels)
        self.fc = same_conv(2 * channels[last], config.size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        layers = []
        for block in self.blocks:
            x = block(x)
            layers.append(x)
        pooled = self.asp(self.mfa(torch.cat(layers[1:], dim=1)))
        return torch.as_tensor(self.fc(pooled)[:, :, 0])
