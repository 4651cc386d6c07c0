"""Rotary positions with stretched frequencies (LongRoPE, Ding et al., 2024), halves rotated.

The published program has one table for all lengths of a request. Letters: P positions, D head size.
"""

from __future__ import annotations

import math

import torch

from cantata_layers.code_predictor import CosSin
from cantata_models.voxcpm2.config import LongRope


def build_cos_sin(rope: LongRope, positions: int) -> CosSin:
    """Return the angles of positions 0 to P - 1, on the default device."""
    even = torch.arange(0, rope.head_dim, 2, dtype=torch.float32)
    frequencies = 1.0 / rope.theta ** (even / rope.head_dim)
    # In this order: thousands of positions later, any other rounds to other angles.
    stretched = 1.0 / torch.tensor(rope.factors, dtype=torch.float32)
    counted = torch.arange(positions, dtype=torch.float32)
    angles = torch.outer(counted, stretched) * frequencies
    longer = math.log(rope.max_positions / rope.original_positions)
    scale = math.sqrt(1 + longer / math.log(rope.original_positions))
    return angles.cos() * scale, angles.sin() * scale


def apply_rotary(x: torch.Tensor, cos_sin: CosSin) -> torch.Tensor:
    """[..., D] rotated by angles [..., D / 2] that broadcast, in float32; keeps the dtype."""
    cos, sin = cos_sin
    low, high = x.float().chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1).to(x.dtype)
