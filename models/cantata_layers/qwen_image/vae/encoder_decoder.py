"""Encoder and decoder, each of one frame.

Letters: B pictures, Z latent channels, H rows, W columns, F pixels on a latent's side.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

from cantata_layers.qwen_image.config.vae import COLOURS, VaeConfig
from cantata_layers.qwen_image.vae.layers import (
    ChannelNorm,
    Downsample,
    Middle,
    Residual,
    Upsample,
)


class EncoderLayers(nn.Module):
    """[B, 3, H, W] -> [B, 2 Z, H / F, W / F]."""

    def __init__(self, config: VaeConfig) -> None:
        super().__init__()
        widths = [config.base_width * factor for factor in (1, *config.width_factors)]
        self.conv_in = nn.Conv2d(COLOURS, widths[0], 3, padding=1)
        layers: list[nn.Module] = []
        for level, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            layers += (
                Residual(outputs if block else inputs, outputs)
                for block in range(config.residual_blocks)
            )
            if level < len(config.width_factors):
                layers.append(Downsample(outputs))
        self.down_blocks = nn.ModuleList(layers)
        self.mid_block = Middle(widths[-1])
        self.norm_out = ChannelNorm(widths[-1])
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
            Residual(outputs if block else inputs, outputs) for block in range(blocks)
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
        self.mid_block = Middle(widths[0])
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
        self.norm_out = ChannelNorm(widths[-1])
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
