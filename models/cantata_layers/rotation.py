"""Rotary position embedding (Su et al., 2021) over the two halves of a head.

Letters: B rows, T positions, H heads, D head size.
"""

from __future__ import annotations

import torch


class Rotation:
    """Rotary positions of one call: [B, T, 1, D / 2] cosines and sines."""

    def __init__(self, positions: torch.Tensor, frames: int, inverse_frequencies: torch.Tensor):
        offsets = torch.arange(frames, device=positions.device)
        angles = (positions[:, None] + offsets)[..., None, None].float() * inverse_frequencies
        self._cos, self._sin = angles.cos(), angles.sin()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[B, T, H, D] -> [B, T, H, D], rotated."""
        low, high = x.chunk(2, dim=-1)
        turned = (low * self._cos - high * self._sin, high * self._cos + low * self._sin)
        return torch.cat(turned, dim=-1)
