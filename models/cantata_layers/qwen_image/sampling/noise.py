"""The noise that a seed stands for, and how latents are laid out as tokens.

Letters: Z latent channels, h and w latents, P = 4 Z numbers of a token.
"""

from __future__ import annotations

import torch

from cantata_layers.qwen_image.config.transformer import PATCH
from cantata_layers.qwen_image.grid import Grid


def draw_noise(seed: int, grid: Grid, token_width: int) -> torch.Tensor:
    """Draw the noise of one picture, the same on every machine and in any company.

    It is drawn as diffusers draws it with a generator on the CPU for each picture.

    Args:
        seed: of the picture.
        grid: of the picture.
        token_width: P.

    Returns:
        [grid.tokens, P] float32.
    """
    generator = torch.Generator("cpu").manual_seed(seed)
    shape = (token_width // PATCH**2, PATCH * grid.height, PATCH * grid.width)
    return to_tokens(torch.randn(1, 1, *shape, generator=generator, dtype=torch.float32)[0, 0])


def to_tokens(latents: torch.Tensor) -> torch.Tensor:
    """[Z, h, w] -> [h / 2 * w / 2, P]; a token's numbers by channel, row and column."""
    channels, height, width = latents.shape
    cut = latents.reshape(channels, height // PATCH, PATCH, width // PATCH, PATCH)
    return cut.permute(1, 3, 0, 2, 4).reshape(-1, channels * PATCH**2)


def to_latents(tokens: torch.Tensor, grid: Grid) -> torch.Tensor:
    """[grid.tokens, P] -> [Z, h, w]."""
    cut = tokens.reshape(grid.height, grid.width, -1, PATCH, PATCH).permute(2, 0, 3, 1, 4)
    return cut.reshape(-1, PATCH * grid.height, PATCH * grid.width)
