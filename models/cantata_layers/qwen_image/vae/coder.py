"""Pictures to latents and back, with a checkpoint's weights; large ones in overlapping tiles,
blended where they overlap, for less memory.

Tiles see less of a picture, so its pixels change a little. Source: `tiled_encode` and
`tiled_decode` of diffusers' AutoencoderKLQwenImage, with the same tiles.

Letters: B pictures, C channels, Z latent channels, h and w a picture's latents, H and W its
pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.feed_forward import Tiling
from cantata_layers.qwen_image.config import VAE, WEIGHTS, VaeConfig
from cantata_layers.qwen_image.numerics import dtype_on
from cantata_layers.qwen_image.vae.encoder_decoder import DecoderNetwork, EncoderNetwork
from cantata_layers.weights import WeightMap


def tiled(
    network: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    size: int,
    stride: int,
    factor: float,
) -> torch.Tensor:
    """Run a network tile by tile.

    Args:
        network: [B, C, h, w] -> [B, C', factor h, factor w].
        x: [B, C, H, W].
        size: of a tile's side, in x.
        stride: from one tile to the next, in x.

    Returns:
        [B, C', factor H, factor W].
    """
    height, width = x.shape[2:]
    rows = [
        [network(x[:, :, top : top + size, left : left + size]) for left in range(0, width, stride)]
        for top in range(0, height, stride)
    ]
    step, overlap = int(stride * factor), int(size * factor) - int(stride * factor)
    for number, row in enumerate(rows):
        for column, tile in enumerate(row):
            if number:
                _blend(rows[number - 1][column], tile, overlap, dim=2)
            if column:
                _blend(row[column - 1], tile, overlap, dim=3)
    joined = torch.cat(
        [torch.cat([tile[:, :, :step, :step] for tile in row], dim=3) for row in rows], dim=2
    )
    return joined[:, :, : int(height * factor), : int(width * factor)]


def _blend(before: torch.Tensor, tile: torch.Tensor, overlap: int, dim: int) -> None:
    """Fade from the tile before into this one, in place."""
    extent = min(before.shape[dim], tile.shape[dim], overlap)
    weights = torch.arange(extent, device=tile.device, dtype=tile.dtype) / extent
    weights = weights[:, None] if dim == 2 else weights
    old = before.narrow(dim, before.shape[dim] - extent, extent)
    new = tile.narrow(dim, 0, extent)
    new.copy_(old * (1 - weights) + new * weights)


LEVELS = 255
ENCODER, DECODER = (
    WeightMap({f"{side}.{{}}": f"{side}.{{}}", f"{conv}.{{}}": f"{conv}.{{}}"})
    for side, conv in (("encoder", "quant_conv"), ("decoder", "post_quant_conv"))
)
"""Published names are the networks' own."""
BETWEEN_FRAMES = ".time_conv."
"""In the names of convolutions that a single frame does not use."""


class PictureEncoder:
    """Pictures to latents of mean 0 and deviation 1.

    Args:
        tiling: None: never.

    Raises:
        ConfigError: weights are missing or of another shape.
    """

    def __init__(
        self,
        checkpoint: Path,
        config: VaeConfig,
        device: torch.device,
        tiling: Tiling | None = None,
    ) -> None:
        with torch.device("meta"):
            self._network = EncoderNetwork(config)
        ENCODER.fill(self._network, half(checkpoint, ENCODER, device), checkpoint / VAE)
        self._config, self._tiling = config, tiling
        self._means, self._stds = statistics(config, device)

    @torch.inference_mode()
    def encode(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w]; H and W are multiples of a latent's pixels."""
        device = self._means.device
        colours = torch.from_numpy(pixels.astype(np.float32) / LEVELS).permute(2, 0, 1)
        x = (2.0 * colours - 1.0)[None].contiguous().to(device, dtype_on(device))
        tiling = self._tiling
        if tiling is None or pixels.shape[0] * pixels.shape[1] <= tiling.above:
            mean = self._network(x)
        else:
            factor = 1 / self._config.pixels_per_latent
            mean = tiled(self._network, x, tiling.size, tiling.stride, factor)
        latents: torch.Tensor = (mean[0].float() - self._means) / self._stds
        return latents


class PictureDecoder:
    """Latents to pictures; arguments and errors as `PictureEncoder`."""

    def __init__(
        self,
        checkpoint: Path,
        config: VaeConfig,
        device: torch.device,
        tiling: Tiling | None = None,
    ) -> None:
        with torch.device("meta"):
            self._network = DecoderNetwork(config)
        DECODER.fill(self._network, half(checkpoint, DECODER, device), checkpoint / VAE)
        self._config, self._tiling = config, tiling
        self._means, self._stds = statistics(config, device)

    @torch.inference_mode()
    def decode(self, latents: torch.Tensor) -> NDArray[np.uint8]:
        """[Z, h, w] of mean 0 and deviation 1 -> uint8 [H, W, 3]."""
        device, factor = self._means.device, self._config.pixels_per_latent
        z = latents.to(device, torch.float32) * self._stds + self._means
        z = z[None].to(dtype_on(device))
        tiling = self._tiling
        if tiling is None or latents.shape[1] * latents.shape[2] * factor**2 <= tiling.above:
            output = self._network(z)
        else:
            sizes = tiling.size // factor, tiling.stride // factor
            output = tiled(self._network, z, *sizes, factor)
        shown = (output[0].float() * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0)
        picture: NDArray[np.uint8] = (shown * LEVELS).round().to(torch.uint8).cpu().numpy()
        return picture


def half(
    checkpoint: Path, names: WeightMap, device: torch.device
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield a half's tensors, of convolutions in time only what acts on a single frame."""
    for name, tensor in names.read(checkpoint / VAE, WEIGHTS):
        if BETWEEN_FRAMES not in name:
            flat = tensor[:, :, -1] if tensor.ndim == 5 else tensor
            flat = flat[..., 0] if name.endswith(".gamma") and flat.ndim == 4 else flat
            quick = torch.channels_last if flat.ndim == 4 else torch.contiguous_format
            yield name, flat.to(device, dtype_on(device)).contiguous(memory_format=quick)


def statistics(config: VaeConfig, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """[Z, 1, 1] means and deviations of latents."""
    means, stds = torch.tensor(config.means), torch.tensor(config.stds)
    return means[:, None, None].to(device), stds[:, None, None].to(device)
