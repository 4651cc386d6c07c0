"""The autoencoder of Qwen-Image for single pictures: 2D convolutions under the published names.

The published layout is a causal video network (arXiv 2508.02324). Of a clip of one
picture, a causal 3D convolution sees the last slice of its kernel alone, so a 2D convolution with
that slice is the same network; `published_tensors` writes it back as 3D kernels with empty past.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class AutoencoderSize:
    """Sizes under their published names; `z_dim` channels at an eighth of the resolution."""

    base_dim: int = 12
    z_dim: int = 16
    dim_mult: tuple[int, ...] = (1, 2, 4, 4)
    num_res_blocks: int = 1


class SketchNorm(nn.Module):
    """Scales the channels of every pixel to a root mean square of one, then by `gamma`."""

    def __init__(self, channels: int, trailing: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, *[1] * trailing))

    def forward(self, x: Tensor) -> Tensor:
        """Normalizes `[n, c, h, w]`."""
        size = x.shape[1]
        directions: Tensor = functional.normalize(x, dim=1)
        return directions * math.sqrt(size) * self.gamma.view(1, size, 1, 1)


class ResidualBlock(nn.Module):
    """Two normalized 3x3 convolutions beside a shortcut."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.norm1 = SketchNorm(before, 3)
        self.conv1 = nn.Conv2d(before, after, 3, padding=1)
        self.norm2 = SketchNorm(after, 3)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(before, after, 1) if before != after else nn.Identity()
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, before, h, w]` to `[n, after, h, w]`."""
        y = self.conv1(functional.silu(self.norm1(x)))
        y = self.conv2(functional.silu(self.norm2(y)))
        total: Tensor = self.conv_shortcut(x) + y
        return total


class AttentionBlock(nn.Module):
    """One head of attention among all pixels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = SketchNorm(channels, 2)
        self.to_qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)
        nn.init.zeros_(self.proj.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` to its like."""
        n, c, h, w = x.shape
        qkv = self.to_qkv(self.norm(x)).reshape(n, 1, 3 * c, h * w).transpose(2, 3)
        q, k, v = qkv.chunk(3, dim=-1)
        y = functional.scaled_dot_product_attention(q, k, v)
        mixed: Tensor = self.proj(y.squeeze(1).transpose(1, 2).reshape(n, c, h, w))
        return x + mixed


class MidBlock(nn.Module):
    """Residual block, attention, residual block."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList([AttentionBlock(channels)])
        self.resnets = nn.ModuleList([ResidualBlock(channels, channels) for _ in range(2)])

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` to its like."""
        x = self.attentions[0](self.resnets[0](x))
        y: Tensor = self.resnets[1](x)
        return y


class SketchDownsample(nn.Module):
    """A convolution of stride 2 over the picture padded by one pixel right and below."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.resample = nn.Sequential(
            nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(channels, channels, 3, stride=2)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` to `[n, c, h/2, w/2]`."""
        y: Tensor = self.resample(x)
        return y


class UpsampleTwice(nn.Module):
    """Every pixel becomes four; a convolution then halves the channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.resample = nn.Sequential(
            nn.Upsample(scale_factor=2.0, mode="nearest-exact"),
            nn.Conv2d(channels, channels // 2, 3, padding=1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, c, h, w]` to `[n, c/2, 2h, 2w]`."""
        y: Tensor = self.resample(x)
        return y


class SketchEncoder(nn.Module):
    """Pictures to the mean and the log variance of their latents."""

    def __init__(self, size: AutoencoderSize) -> None:
        super().__init__()
        widths = [size.base_dim * factor for factor in (1, *size.dim_mult)]
        self.conv_in = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down_blocks = nn.ModuleList()
        for level, (before, after) in enumerate(pairwise(widths)):
            for block in range(size.num_res_blocks):
                self.down_blocks.append(ResidualBlock(after if block else before, after))
            if level < len(size.dim_mult) - 1:
                self.down_blocks.append(SketchDownsample(after))
        self.mid_block = MidBlock(widths[-1])
        self.norm_out = SketchNorm(widths[-1], 3)
        self.conv_out = nn.Conv2d(widths[-1], 2 * size.z_dim, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Maps `[n, 3, h, w]` in -1..1 to `[n, 2 z, h/8, w/8]`."""
        x = self.conv_in(pictures)
        for block in self.down_blocks:
            x = block(x)
        y: Tensor = self.conv_out(functional.silu(self.norm_out(self.mid_block(x))))
        return y


class SketchUpBlock(nn.Module):
    """The decoder's residual blocks of one resolution, then the step to the next."""

    def __init__(self, before: int, after: int, blocks: int, *, doubling: bool) -> None:
        super().__init__()
        self.resnets = nn.ModuleList(
            [ResidualBlock(after if block else before, after) for block in range(blocks)]
        )
        self.upsamplers = nn.ModuleList([UpsampleTwice(after)] if doubling else [])

    def forward(self, x: Tensor) -> Tensor:
        """Maps `[n, before, h, w]` to `[n, after/2, 2h, 2w]`, or at the end `[n, after, h, w]`."""
        for block in (*self.resnets, *self.upsamplers):
            x = block(x)
        return x


class SketchDecoder(nn.Module):
    """Latents to pictures."""

    def __init__(self, size: AutoencoderSize) -> None:
        super().__init__()
        widths = [size.base_dim * factor for factor in (size.dim_mult[-1], *size.dim_mult[::-1])]
        self.conv_in = nn.Conv2d(size.z_dim, widths[0], 3, padding=1)
        self.mid_block = MidBlock(widths[0])
        last = len(size.dim_mult) - 1
        self.up_blocks = nn.ModuleList(
            SketchUpBlock(
                before // 2 if level else before,
                after,
                size.num_res_blocks + 1,
                doubling=level < last,
            )
            for level, (before, after) in enumerate(pairwise(widths))
        )
        self.norm_out = SketchNorm(widths[-1], 3)
        self.conv_out = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, latents: Tensor) -> Tensor:
        """Maps `[n, z, h, w]` to `[n, 3, 8h, 8w]`, about -1..1."""
        x = self.mid_block(self.conv_in(latents))
        for block in self.up_blocks:
            x = block(x)
        y: Tensor = self.conv_out(functional.silu(self.norm_out(x)))
        return y


class Autoencoder(nn.Module):
    """Both halves and the 1x1 convolutions around the latents."""

    def __init__(self, size: AutoencoderSize) -> None:
        super().__init__()
        self.size = size
        self.encoder = SketchEncoder(size)
        self.quant_conv = nn.Conv2d(2 * size.z_dim, 2 * size.z_dim, 1)
        self.post_quant_conv = nn.Conv2d(size.z_dim, size.z_dim, 1)
        self.decoder = SketchDecoder(size)

    def encode(self, pictures: Tensor) -> Tensor:
        """Maps `[n, 3, h, w]` in -1..1 to the mean `[n, z, h/8, w/8]` of the latents."""
        return self.posterior(pictures)[:, : self.size.z_dim]

    def posterior(self, pictures: Tensor) -> Tensor:
        """Maps `[n, 3, h, w]` in -1..1 to mean and log variance `[n, 2 z, h/8, w/8]`."""
        moments: Tensor = self.quant_conv(self.encoder(pictures))
        return moments

    def decode(self, latents: Tensor) -> Tensor:
        """Maps `[n, z, h, w]` to pictures `[n, 3, 8h, 8w]`, about -1..1."""
        pictures: Tensor = self.decoder(self.post_quant_conv(latents))
        return pictures


def is_plane(name: str) -> bool:
    """Tells whether the published layout keeps this convolution in two dimensions."""
    return ".resample." in name or ".to_qkv." in name or ".proj." in name


def published_tensors(autoencoder: Autoencoder) -> dict[str, Tensor]:
    """Gives the state with 3D kernels `[out, in, t, h, w]` that see the last slice alone."""
    tensors = dict(autoencoder.state_dict())
    for name, tensor in tensors.items():
        if tensor.dim() == 4 and not name.endswith("gamma") and not is_plane(name):
            past = tensor.shape[-1] - 1
            tensors[name] = functional.pad(tensor[:, :, None], (0, 0, 0, 0, past, 0))
    return tensors


def from_published(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Takes the last slice of every 3D kernel: the inverse of `published_tensors`."""
    return {
        name: tensor[:, :, -1] if tensor.dim() == 5 else tensor for name, tensor in tensors.items()
    }
