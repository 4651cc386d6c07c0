"""Layers of both halves.

Letters: B pictures, C channels, H rows, W columns.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-12
"""Length by which a place is divided."""


class ChannelNorm(nn.Module):
    """[B, C, H, W] -> the same shape: each place divided by its root mean square, with a gain."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        # Quicker than the library's norm along a dimension that is not the last.
        lengths = (wide * wide).sum(dim=1, keepdim=True).sqrt().clamp_min(EPSILON)
        scale = len(self.gamma) ** 0.5
        return torch.as_tensor((wide / lengths).to(x.dtype) * scale * self.gamma)


class Residual(nn.Module):
    """[B, C, H, W] -> [B, C', H, W]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1 = ChannelNorm(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2 = ChannelNorm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        changed = self.conv1(functional.silu(self.norm1(x)))
        changed = self.conv2(functional.silu(self.norm2(changed)))
        return torch.as_tensor(changed + self.conv_shortcut(x))


class Attention(nn.Module):
    """[B, C, H, W] -> the same shape: each place attends to all, with one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = ChannelNorm(channels)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = self.to_qkv(self.norm(x)).flatten(2).transpose(1, 2)[:, None]
        query, key, value = (part.contiguous() for part in places.chunk(3, dim=-1))
        seen = functional.scaled_dot_product_attention(query, key, value)
        return torch.as_tensor(x + self.proj(seen[:, 0].transpose(1, 2).reshape(x.shape)))


class Middle(nn.Module):
    """[B, C, H, W] -> the same shape, at the coarsest resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList([Attention(channels)])
        self.resnets = nn.ModuleList(Residual(channels, channels) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, last = self.resnets
        return torch.as_tensor(last(self.attentions[0](first(x))))


class Downsample(nn.Module):
    """[B, C, H, W] -> [B, C, H / 2, W / 2]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        pad = nn.ZeroPad2d((0, 1, 0, 1))
        self.resample = nn.Sequential(pad, nn.Conv2d(channels, channels, 3, stride=2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.resample(x))


class Upsample(nn.Module):
    """[B, C, H, W] -> [B, C / 2, 2 H, 2 W]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        nearest = nn.Upsample(scale_factor=2.0, mode="nearest-exact")
        self.resample = nn.Sequential(nearest, nn.Conv2d(channels, channels // 2, 3, padding=1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.resample(x))
