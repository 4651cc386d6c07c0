"""Large pictures in overlapping tiles, blended where they overlap, for less memory.

Tiles see less of a picture, so its pixels change a little. Source: `tiled_encode` and
`tiled_decode` of diffusers' AutoencoderKLQwenImage, with the same tiles.

Letters: B pictures, C channels, H rows, W columns.
"""

from __future__ import annotations

from collections.abc import Callable

import torch


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
        factor: of the network.

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
