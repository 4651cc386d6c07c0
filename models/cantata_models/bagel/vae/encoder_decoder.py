"""The autoencoder's two networks.

Letters: Z latent channels, h and w latents, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata_models.bagel.config import COLOURS
from cantata_models.bagel.vae.layers import Double, Halve, Middle, Residual, group_norm


@dataclass(frozen=True, slots=True)
class VaeShape:
    """Sizes of the autoencoder, as its tensors have them; there is no file of them."""

    widths: tuple[int, ...]
    """Channels at each resolution, from the finest; the first is also that of the first layer."""
    blocks: int
    """At each resolution of the encoder; the decoder has one more."""
    latents: int
    """Z."""


class Level(nn.Module):
    """What happens at one resolution."""

    def __init__(self, blocks: Sequence[Residual], after: nn.Module | None, name: str) -> None:
        super().__init__()
        self.block = nn.ModuleList(blocks)
        self._after = None if after is None else name
        if after is not None:
            setattr(self, name, after)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.block:
            x = block(x)
        return x if self._after is None else torch.as_tensor(getattr(self, self._after)(x))


class BagelEncoderNetwork(nn.Module):
    """[1, 3, H, W] of -1 to 1 -> [1, 2 Z, h, w]: means, then logarithms of variances."""

    def __init__(self, shape: VaeShape) -> None:
        super().__init__()
        widths, last = (shape.widths[0], *shape.widths), len(shape.widths) - 1
        self.conv_in = nn.Conv2d(COLOURS, widths[0], 3, padding=1)
        self.down = nn.ModuleList(
            Level(
                _residuals(widths[level], width, shape.blocks),
                Halve(width) if level < last else None,
                "downsample",
            )
            for level, width in enumerate(shape.widths)
        )
        self.mid = Middle(widths[-1])
        self.norm_out = group_norm(widths[-1])
        self.conv_out = nn.Conv2d(widths[-1], 2 * shape.latents, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv_in(x)
        for level in self.down:
            x = level(x)
        return torch.as_tensor(self.conv_out(functional.silu(self.norm_out(self.mid(x)))))


class BagelDecoderNetwork(nn.Module):
    """[1, Z, h, w] -> [1, 3, H, W] of about -1 to 1."""

    def __init__(self, shape: VaeShape) -> None:
        super().__init__()
        widths = (*shape.widths, shape.widths[-1])
        self.conv_in = nn.Conv2d(shape.latents, widths[-1], 3, padding=1)
        self.mid = Middle(widths[-1])
        # Counted from the finest resolution, as published; run from the coarsest.
        self.up = nn.ModuleList(
            Level(
                _residuals(widths[level + 1], width, shape.blocks + 1),
                Double(width) if level else None,
                "upsample",
            )
            for level, width in enumerate(shape.widths)
        )
        self.norm_out = group_norm(widths[0])
        self.conv_out = nn.Conv2d(widths[0], COLOURS, 3, padding=1)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        x = self.mid(self.conv_in(z))
        for level in reversed(self.up):
            x = level(x)
        return torch.as_tensor(self.conv_out(functional.silu(self.norm_out(x))))


def _residuals(inputs: int, outputs: int, count: int) -> list[Residual]:
    return [Residual(outputs if block else inputs, outputs) for block in range(count)]
