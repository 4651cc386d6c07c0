"""Layers of the autoencoder, under their published names.

Source: FLUX's autoencoder (Black Forest Labs), as the publisher's modeling/autoencoder.py has it.

Letters: B pictures, C channels, H rows, W columns.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

GROUPS = 32


def group_norm(channels: int) -> nn.GroupNorm:
    """Over groups of channels."""
    return nn.GroupNorm(GROUPS, channels, eps=1e-6)


class Residual(nn.Module):
    """[B, inputs, H, W] -> [B, outputs, H, W]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = group_norm(inputs), group_norm(outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        if inputs != outputs:
            self.nin_shortcut = nn.Conv2d(inputs, outputs, 1)
        self._widens = inputs != outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = self.conv1(functional.silu(self.norm1(x)))
        output = self.conv2(functional.silu(self.norm2(output)))
        return (self.nin_shortcut(x) if self._widens else x) + torch.as_tensor(output)


class Attention(nn.Module):
    """One head over all places; [B, C, H, W] -> the same shape."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = group_norm(channels)
        self.q, self.k, self.v, self.proj_out = (nn.Conv2d(channels, channels, 1) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        q, k, v = (
            part(normed).flatten(2).transpose(1, 2)[:, None] for part in (self.q, self.k, self.v)
        )
        seen = functional.scaled_dot_product_attention(q, k, v)[:, 0]
        return x + torch.as_tensor(self.proj_out(seen.transpose(1, 2).reshape(x.shape)))


class Middle(nn.Module):
    """At the coarsest resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block_1, self.block_2 = (Residual(channels, channels) for _ in range(2))
        self.attn_1 = Attention(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.block_2(self.attn_1(self.block_1(x))))


class Halve(nn.Module):
    """[B, C, H, W] -> [B, C, H / 2, W / 2]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.conv(functional.pad(x, (0, 1, 0, 1))))


class Double(nn.Module):
    """[B, C, H, W] -> [B, C, 2 H, 2 W]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.conv(functional.interpolate(x, scale_factor=2.0)))
