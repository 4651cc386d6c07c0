"""A decoder's operations in torch alone: on any device, and where vLLM is not installed.

Letters: N positions, D hidden size, H query heads, K key-value heads, E head size.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from cantata.contract.model.fused_operators import add_rms_norm, rotate_heads
from cantata.stages.ar.lane_memory import TorchLanes

RotaryFactors = tuple[torch.Tensor, torch.Tensor]
"""Cosines, and sines of which the first half is negated: [N, 1, E] float32 each."""


class TorchKernels:
    """Implements `contract.model.plain_talker.BackboneKernels`.

    Args:
        dtype: of keys and values.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """[..., D] -> [..., D], a new tensor."""
        return functional.rms_norm(x, weight.shape, weight, epsilon)

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> torch.Tensor:
        """[N, D] each: `residual` becomes their sum, and its norm is returned."""
        return add_rms_norm(residual, x, weight, epsilon)

    def look_up_rotary(self, table: torch.Tensor, positions: torch.Tensor) -> RotaryFactors:
        """[positions, E] and [N] int64 -> what `rotate` needs."""
        cosines, sines = table[positions][:, None].chunk(2, dim=-1)
        return torch.cat((cosines, cosines), dim=-1), torch.cat((-sines, sines), dim=-1)

    def rotate(
        self, queries: torch.Tensor, keys: torch.Tensor, head_size: int, rotary: RotaryFactors
    ) -> None:
        """Rotate [N, H * E] queries and [N, K * E] keys in place."""
        rotate_heads(queries, keys, *rotary)

    def attention(
        self,
        layers: int,
        heads: int,
        kv_heads: int,
        head_size: int,
        *,
        requests: int,
        positions: int,
    ) -> TorchLanes:
        """Memory for this many requests of at most so many positions."""
        return TorchLanes(
            layers, kv_heads, head_size, lanes=requests, positions=positions, dtype=self._dtype
        )
