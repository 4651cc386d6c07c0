"""From noise to latents: the noise itself, the steps, previews.

A pixel of a preview stands for a latent's place; its colours are a linear function of the latent,
fitted once for a checkpoint through its own encoder.

Letters: Z latent channels, h and w latents, N tokens, P = 4 Z numbers of a token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from cantata_layers.qwen_image.config import PATCH
from cantata_layers.qwen_image.grid import Grid


def draw_noise(seed: int, grid: Grid, token_width: int) -> torch.Tensor:
    """Draw the noise of one picture, the same on every machine and in any company.

    It is drawn as diffusers draws it with a generator on the CPU for each picture.

    Args:
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


def guided(velocity: torch.Tensor, negative: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Move a velocity away from that of the negative prompt, and keep each token's length.

    Args:
        velocity: [N, P] float32 of the prompt.
        negative: of the negative prompt; None: no guidance.
        scale: 1 has no effect.
    """
    if negative is None:
        return velocity
    moved = negative + scale * (velocity - negative)
    wanted, found = (
        torch.linalg.vector_norm(part, dim=-1, keepdim=True) for part in (velocity, moved)
    )
    return torch.as_tensor(moved * (wanted / found))


def euler(
    latents: torch.Tensor, velocity: torch.Tensor, share: float, following: float
) -> torch.Tensor:
    """[N, P] latents with the share of noise that follows, in float32."""
    # As the reference subtracts: in float32.
    difference = float(torch.tensor(following) - torch.tensor(share))
    return latents.float() + difference * velocity.float()


def finished(latents: torch.Tensor, velocity: torch.Tensor, share: float) -> torch.Tensor:
    """[N, P] latents of the picture that a step foresees."""
    return latents.float() - share * velocity.float()


FIT_PICTURES = 6
FIT_LATENTS = 16
"""On a picture's side."""
COARSEST = 3
"""Places of colour on a side of the smoothest fitting picture; each next has twice as many."""
SEED = 0
LEVELS = 255


class LatentEncoder(Protocol):
    """Pictures to latents."""

    def encode(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w]."""
        ...


@dataclass(frozen=True, slots=True)
class PreviewColours:
    """RGB from 0 to 1 as a linear function of a latent."""

    matrix: NDArray[np.float32]
    """[Z, 3]"""
    bias: NDArray[np.float32]
    """[3]"""

    def picture(self, latents: torch.Tensor) -> NDArray[np.uint8]:
        """[Z, h, w] -> uint8 [h, w, 3]."""
        values = latents.float().cpu().numpy()
        colours = np.tensordot(values, self.matrix, axes=(0, 0)) + self.bias
        shown: NDArray[np.uint8] = (colours.clip(0, 1) * LEVELS).round().astype(np.uint8)
        return shown


def fit_preview(encoder: LatentEncoder, pixels_per_latent: int) -> PreviewColours:
    """Fit the colours by least squares on pictures of random colours, coarse and fine."""
    latents, colours = [], []
    for number in range(FIT_PICTURES):
        pixels = _draw_fitting_picture(number, pixels_per_latent)
        output = encoder.encode(pixels).float().cpu()
        latents.append(output.flatten(1).T)
        planes = torch.from_numpy(pixels).permute(2, 0, 1).float() / LEVELS
        colours.append(functional.avg_pool2d(planes, pixels_per_latent).flatten(1).T)
    known = torch.cat(latents)
    known = torch.cat([known, torch.ones(len(known), 1)], dim=1).double()
    solved = torch.linalg.lstsq(known, torch.cat(colours).double()).solution.float().numpy()
    return PreviewColours(solved[:-1], solved[-1])


def _draw_fitting_picture(number: int, pixels_per_latent: int) -> NDArray[np.uint8]:
    """Smooth fields of random colours, uint8 [H, W, 3]."""
    side = FIT_LATENTS * pixels_per_latent
    places = COARSEST << (number % 3)
    drawn = np.random.RandomState(SEED + number).random_sample((1, 3, places, places))
    field = functional.interpolate(
        torch.from_numpy(drawn.astype(np.float32)), size=(side, side), mode="bilinear"
    )
    return (field[0].permute(1, 2, 0) * LEVELS).round().to(torch.uint8).numpy()
