"""Normalisations, computed in float32.

Letters: L tokens, E columns.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

EPSILON = 1e-6


class RmsNorm(nn.Module):
    """[..., E] -> [..., E] of the same dtype, with a learnt gain."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + EPSILON)
        return scaled.to(x.dtype) * self.weight


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    """[L, E] -> [L, E], without gain or bias; the modulation has both."""
    return functional.layer_norm(x, x.shape[-1:], eps=EPSILON)
