"""Small pictures straight from latents, while a picture is being drawn.

Each pixel stands for a latent's place; its colours are a linear function of the latent, fitted
once for a checkpoint through its own encoder.

Letters: Z latent channels, h and w latents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

FIT_PICTURES = 6
FIT_LATENTS = 16
"""On a picture's side."""
COARSEST = 3
"""Places of colour on a side of the smoothest fitting picture; each next has twice as many."""
SEED = 0
LEVELS = 255


class Encoder(Protocol):
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


def fit_preview(encoder: Encoder, pixels_per_latent: int) -> PreviewColours:
    """Fit the colours by least squares on pictures of random colours, coarse and fine.

    Args:
        encoder: of the checkpoint.
        pixels_per_latent: on a side.
    """
    latents, colours = [], []
    for number in range(FIT_PICTURES):
        pixels = _fitting_picture(number, pixels_per_latent)
        output = encoder.encode(pixels).float().cpu()
        latents.append(output.flatten(1).T)
        planes = torch.from_numpy(pixels).permute(2, 0, 1).float() / LEVELS
        colours.append(functional.avg_pool2d(planes, pixels_per_latent).flatten(1).T)
    known = torch.cat(latents)
    known = torch.cat([known, torch.ones(len(known), 1)], dim=1).double()
    solved = torch.linalg.lstsq(known, torch.cat(colours).double()).solution.float().numpy()
    return PreviewColours(solved[:-1], solved[-1])


def _fitting_picture(number: int, pixels_per_latent: int) -> NDArray[np.uint8]:
    """Smooth fields of random colours, uint8 [H, W, 3]."""
    side = FIT_LATENTS * pixels_per_latent
    places = COARSEST << (number % 3)
    drawn = np.random.RandomState(SEED + number).random_sample((1, 3, places, places))
    field = functional.interpolate(
        torch.from_numpy(drawn.astype(np.float32)), size=(side, side), mode="bilinear"
    )
    return (field[0].permute(1, 2, 0) * LEVELS).round().to(torch.uint8).numpy()
