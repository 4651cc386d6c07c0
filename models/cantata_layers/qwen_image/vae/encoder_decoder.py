"""Encoder and decoder, each of one frame, and their layers.

Letters: B pictures, C channels, Z latent channels, H rows, W columns, F pixels on a latent's side.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.qwen_image.config import COLOURS, VaeConfig

EPSILON = 1e-12
"""Length by which a place is divided."""


class PixelNorm(nn.Module):
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


class PlaneResidual(nn.Module):
    """[B, C, H, W] -> [B, C', H, W]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1 = PixelNorm(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2 = PixelNorm(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        changed = self.conv1(functional.silu(self.norm1(x)))
        changed = self.conv2(functional.silu(self.norm2(changed)))
        return torch.as_tensor(changed + self.conv_shortcut(x))


class PlaneAttention(nn.Module):
    """[B, C, H, W] -> the same shape: each place attends to all, with one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = PixelNorm(channels)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = self.to_qkv(self.norm(x)).flatten(2).transpose(1, 2)[:, None]
        query, key, value = (part.contiguous() for part in places.chunk(3, dim=-1))
        seen = functional.scaled_dot_product_attention(query, key, value)
        return torch.as_tensor(x + self.proj(seen[:, 0].transpose(1, 2).reshape(x.shape)))


class PlaneMiddle(nn.Module):
    """[B, C, H, W] -> the same shape, at the coarsest resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList([PlaneAttention(channels)])
        self.resnets = nn.ModuleList(PlaneResidual(channels, channels) for _ in range(2))

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


class EncoderLayers(nn.Module):
    """[B, 3, H, W] -> [B, 2 Z, H / F, W / F]."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        widths = [config.base_width * factor for factor in (1, *config.width_factors)]
        self.conv_in = nn.Conv2d(COLOURS, widths[0], 3, padding=1)
        layers: list[nn.Module] = []
        for level, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            layers += (
                PlaneResidual(outputs if block else inputs, outputs)
                for block in range(config.residual_blocks)
            )
            if level < len(config.width_factors):
                layers.append(Downsample(outputs))
        self.down_blocks = nn.ModuleList(layers)
        self.mid_block = PlaneMiddle(widths[-1])
        self.norm_out = PixelNorm(widths[-1])
        self.conv_out = nn.Conv2d(widths[-1], 2 * config.latent_channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_in(x)
        for layer in self.down_blocks:
            x = layer(x)
        return torch.as_tensor(self.conv_out(functional.silu(self.norm_out(self.mid_block(x)))))


class UpBlock(nn.Module):
    """One resolution of the decoder."""

    def __init__(self, inputs: int, outputs: int, blocks: int, doubles: bool) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            PlaneResidual(outputs if block else inputs, outputs) for block in range(blocks)
        )
        self.upsamplers = nn.ModuleList([Upsample(outputs)] if doubles else [])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (*self.resnets, *self.upsamplers):
            x = layer(x)
        return x


class DecoderLayers(nn.Module):
    """[B, Z, H, W] -> [B, 3, F H, F W]."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        factors = config.width_factors[::-1]
        widths = [config.base_width * factor for factor in (factors[0], *factors)]
        self.conv_in = nn.Conv2d(config.latent_channels, widths[0], 3, padding=1)
        self.mid_block = PlaneMiddle(widths[0])
        last = len(factors) - 1
        self.up_blocks = nn.ModuleList(
            UpBlock(
                widths[level] // 2 if level else widths[level],
                widths[level + 1],
                config.residual_blocks + 1,
                doubles=level < last,
            )
            for level in range(len(factors))
        )
        self.norm_out = PixelNorm(widths[-1])
        self.conv_out = nn.Conv2d(widths[-1], COLOURS, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.mid_block(self.conv_in(x))
        for block in self.up_blocks:
            x = block(x)
        return torch.as_tensor(self.conv_out(functional.silu(self.norm_out(x))))


class EncoderNetwork(nn.Module):
    """[B, 3, H, W] -> [B, Z, H / F, W / F]: the posterior's mean."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        moments = 2 * config.latent_channels
        self.encoder = EncoderLayers(config)
        self.quant_conv = nn.Conv2d(moments, moments, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean: torch.Tensor = self.quant_conv(self.encoder(x)).chunk(2, dim=1)[0]
        return mean


class DecoderNetwork(nn.Module):
    """[B, Z, H, W] -> [B, 3, F H, F W]."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        self.decoder = DecoderLayers(config)
        self.post_quant_conv = nn.Conv2d(config.latent_channels, config.latent_channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.decoder(self.post_quant_conv(x)))
