"""Changes the rate without weights: neighbouring positions become channels, and back.

Letters: B rows, L positions, C channels, P the patch size.
"""

from __future__ import annotations

import torch


def join(x: torch.Tensor, size: int) -> torch.Tensor:
    """[B, L * P, C] -> [B, L, C * P]; a channel's P positions become neighbours."""
    batch, length, channels = x.shape
    patches = x.view(batch, length // size, size, channels)
    return patches.transpose(2, 3).reshape(batch, length // size, channels * size)


def split(x: torch.Tensor, size: int) -> torch.Tensor:
    """[B, L, C * P] -> [B, L * P, C]; the inverse of `join`."""
    batch, length, channels = x.shape
    patches = x.view(batch, length, channels // size, size)
    return patches.transpose(2, 3).reshape(batch, length * size, channels // size)
