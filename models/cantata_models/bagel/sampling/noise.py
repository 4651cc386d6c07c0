"""The random numbers that a seed stands for, and how latents are laid out as tokens.

They are drawn in the reference's order, from one generator on the CPU: first what chooses the
latents of each picture that is changed, then the noise of the picture that is drawn.

Letters: Z latent channels, h and w latents, N tokens, P = 4 Z numbers of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cantata_layers.qwen_image.grid import Grid
from cantata_models.bagel.config import PATCH


def draw_references(seed: int, grids: Sequence[Grid], channels: int) -> list[torch.Tensor]:
    """[Z, h, w] float32 for each picture that is changed.

    Args:
        seed: of the request.
        grids: tokens of these pictures.
        channels: Z.
    """
    return _of_references(_generator(seed), grids, channels)


def draw_noise(seed: int, grid: Grid, references: Sequence[Grid], numbers: int) -> torch.Tensor:
    """[N, P] float32 for the picture that is drawn.

    Args:
        seed: of the request.
        grid: tokens of this picture.
        references: tokens of the pictures that are changed.
        numbers: P.
    """
    generator = _generator(seed)
    _of_references(generator, references, numbers // PATCH**2)
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


def _generator(seed: int) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def _of_references(
    generator: torch.Generator, grids: Sequence[Grid], channels: int
) -> list[torch.Tensor]:
    return [
        torch.randn(1, channels, PATCH * grid.height, PATCH * grid.width, generator=generator)[0]
        for grid in grids
    ]
