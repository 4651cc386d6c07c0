"""The autoencoder, FLUX's: pictures to latents and back, and how latents are laid out as tokens.

Layers have their published names. Source: FLUX's autoencoder (Black Forest Labs), as the
publisher's modeling/autoencoder.py has it.

Random numbers are drawn in the reference's order, from one generator on the CPU: first what chooses
the latents of each picture that is changed, then the noise of the picture that is drawn.

Letters: B pictures, C channels, Z latent channels, h and w a picture's latents, H and W its pixels,
N tokens, P = 4 Z numbers of a token.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.numerics import dtype_on
from cantata_layers.weights import WeightMap
from cantata_models.bagel.config import AUTOENCODER, COLOURS, PATCH

GROUPS = 32


def group_norm(channels: int) -> nn.GroupNorm:
    """Over groups of channels."""
    return nn.GroupNorm(GROUPS, channels, eps=1e-6)


class VaeResidual(nn.Module):
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


class VaeAttention(nn.Module):
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


class VaeMiddle(nn.Module):
    """At the coarsest resolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block_1, self.block_2 = (VaeResidual(channels, channels) for _ in range(2))
        self.attn_1 = VaeAttention(channels)

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

    def __init__(self, blocks: Sequence[VaeResidual], after: nn.Module | None, name: str) -> None:
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
                _list_residuals(widths[level], width, shape.blocks),
                Halve(width) if level < last else None,
                "downsample",
            )
            for level, width in enumerate(shape.widths)
        )
        self.mid = VaeMiddle(widths[-1])
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
        self.mid = VaeMiddle(widths[-1])
        # Counted from the finest resolution, as published; run from the coarsest.
        self.up = nn.ModuleList(
            Level(
                _list_residuals(widths[level + 1], width, shape.blocks + 1),
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


def _list_residuals(inputs: int, outputs: int, count: int) -> list[VaeResidual]:
    return [VaeResidual(outputs if block else inputs, outputs) for block in range(count)]


LEVELS = 255
ENCODER, DECODER = WeightMap({"encoder.{}": "{}"}), WeightMap({"decoder.{}": "{}"})
SCALE, SHIFT = 0.3611, 0.1159
"""Of latents, as `load_ae` of the publisher has them."""


class BagelPictureEncoder:
    """Pictures to latents.

    Raises:
        ConfigError: (on construction) weights are missing or of another shape.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        tensors = _read_half(checkpoint, ENCODER, device)
        shape = _read_shape(tensors, "encoder", 0, checkpoint)
        with torch.device("meta"):
            self._network = BagelEncoderNetwork(shape)
        ENCODER.fill(self._network, tensors.items(), checkpoint)
        self._device = device
        self.channels = shape.latents
        """Z."""

    def encode(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w], those of the highest density."""
        return self.sample(pixels, None)

    @torch.inference_mode()
    def sample(self, pixels: NDArray[np.uint8], noise: torch.Tensor | None) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w]; H and W are multiples of a latent's pixels.

        Args:
            noise: [Z, h, w] of deviation 1, which chooses among the latents that the picture may
                have; None: their mean.
        """
        x = to_planes(pixels)[None].to(self._device, dtype_on(self._device))
        mean, spread = self._network(x)[0].float().chunk(2)
        if noise is not None:
            mean = mean + torch.exp(0.5 * spread) * noise.to(self._device)
        return torch.as_tensor(SCALE * (mean - SHIFT))


class BagelPictureDecoder:
    """Latents to pictures; arguments and errors as `BagelPictureEncoder`."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        tensors = _read_half(checkpoint, DECODER, device)
        with torch.device("meta"):
            self._network = BagelDecoderNetwork(_read_shape(tensors, "decoder", 1, checkpoint))
        DECODER.fill(self._network, tensors.items(), checkpoint)
        self._device = device

    @torch.inference_mode()
    def decode(self, latents: torch.Tensor) -> NDArray[np.uint8]:
        """[Z, h, w] -> uint8 [H, W, 3]; the reference cuts off fractions."""
        z = (latents.to(self._device, torch.float32) / SCALE + SHIFT).to(dtype_on(self._device))
        shown = (self._network(z[None])[0].float() * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0)
        picture: NDArray[np.uint8] = (shown * LEVELS).to(torch.uint8).cpu().numpy()
        return picture


def to_planes(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """uint8 [H, W, 3] -> float32 [3, H, W] of -1 to 1."""
    colours = torch.from_numpy(pixels.astype(np.float32) / LEVELS).permute(2, 0, 1)
    return ((colours - 0.5) / 0.5).contiguous()


def _read_half(checkpoint: Path, names: WeightMap, device: torch.device) -> dict[str, torch.Tensor]:
    found = names.read(checkpoint, AUTOENCODER)
    return {name: tensor.to(device, dtype_on(device)) for name, tensor in found}


def _read_shape(
    tensors: Mapping[str, torch.Tensor], side: str, more: int, checkpoint: Path
) -> VaeShape:
    """Read the sizes off the weights. `more`: blocks at a resolution beyond the encoder's."""
    pattern = re.compile(rf"{side}\.(?:down|up)\.(\d+)\.block\.(\d+)\.conv1\.weight")
    found = {
        (int(match[1]), int(match[2])): tensor.shape[0]
        for name, tensor in tensors.items()
        if (match := pattern.fullmatch(name))
    }
    first, last = (tensors.get(f"{side}.conv_{end}.weight") for end in ("in", "out"))
    if not found or first is None or last is None:
        raise ConfigError(f"{checkpoint}: {AUTOENCODER}.safetensors holds no such autoencoder")
    levels, blocks = (max(place[axis] for place in found) + 1 for axis in (0, 1))
    widths = tuple(found.get((level, 0), 0) for level in range(levels))
    latents = first.shape[1] if more else last.shape[0] // 2
    return VaeShape(widths, blocks - more, latents)


def draw_references(seed: int, grids: Sequence[Grid], channels: int) -> list[torch.Tensor]:
    """[Z, h, w] float32 for each picture that is changed. `channels`: Z."""
    return _draw_reference_noise(_make_generator(seed), grids, channels)


def draw_noise(seed: int, grid: Grid, references: Sequence[Grid], numbers: int) -> torch.Tensor:
    """[N, P] float32 for the picture that is drawn.

    Args:
        references: tokens of the pictures that are changed.
        numbers: P.
    """
    generator = _make_generator(seed)
    _draw_reference_noise(generator, references, numbers // PATCH**2)
    return torch.randn(grid.tokens, numbers, generator=generator)


def to_tokens(latents: torch.Tensor) -> torch.Tensor:
    """[Z, h, w] -> [N, P]; a token's numbers by row, column and channel."""
    channels, height, width = latents.shape
    cut = latents.reshape(channels, height // PATCH, PATCH, width // PATCH, PATCH)
    return cut.permute(1, 3, 2, 4, 0).reshape(-1, PATCH**2 * channels)


def to_latents(tokens: torch.Tensor, grid: Grid) -> torch.Tensor:
    """[N, P] -> [Z, h, w]."""
    cut = tokens.reshape(grid.height, grid.width, PATCH, PATCH, -1).permute(4, 0, 2, 1, 3)
    return cut.reshape(-1, PATCH * grid.height, PATCH * grid.width)


def _make_generator(seed: int) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def _draw_reference_noise(
    generator: torch.Generator, grids: Sequence[Grid], channels: int
) -> list[torch.Tensor]:
    return [
        torch.randn(1, channels, PATCH * grid.height, PATCH * grid.width, generator=generator)[0]
        for grid in grids
    ]
