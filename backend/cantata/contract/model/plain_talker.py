"""A talker without vLLM, for one listener; `cantata say` runs it instead of a server.

A model may offer one beside its served talker (`StageSpec.plain`). In float32 it gives the same
bits, because it computes with the same kernels: vLLM's compiled ones, handed to it by the engine,
and the model's own products.

Letters: T positions, D hidden size, H query heads, K key-value heads, E head size.
"""

from __future__ import annotations

from typing import Protocol

import torch

from cantata.contract.model.talker import Talker


class AttentionMemory(Protocol):
    """Keys and values of one request, for all layers."""

    def advance(self, positions: int) -> None:
        """Announce how many new positions the next call of each layer's `attend` brings."""
        ...

    def attend(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Remember the new positions' keys and values, and attend causally to all so far.

        Args:
            layer: index.
            queries: [T, H, E] float32.
            keys: [T, K, E] float32, and so are `values`.

        Returns:
            [T, H * E] float32.
        """
        ...


class BackboneKernels(Protocol):
    """The operations of vLLM's layers on a CPU, in float32."""

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> torch.Tensor:
        """[..., D] -> [..., D], a new tensor."""
        ...

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
    ) -> None:
        """[T, D] each: `residual` becomes their sum and `x` its norm, in place."""
        ...

    def rotate(
        self,
        positions: torch.Tensor,
        queries: torch.Tensor,
        keys: torch.Tensor,
        head_size: int,
        table: torch.Tensor,
    ) -> None:
        """Turn [T, H * E] queries and [T, K * E] keys by their positions, in place.

        Args:
            positions: [T] int64.
            queries: in NeoX's layout, as `keys`.
            keys: contiguous.
            head_size: E.
            table: [positions, E] float32: cosines, then sines.
        """
        ...

    def attention(
        self, layers: int, heads: int, kv_heads: int, head_size: int, positions: int
    ) -> AttentionMemory:
        """Memory for one request of at most this many positions."""
        ...


class PlainTalker(Talker):
    """A talker that does not need the served talker's class methods for vLLM; otherwise the
    same."""

    hidden_size: int
    """D, the width of hidden states."""
    sampled_hidden: torch.Tensor
    """Set by the engine: the hidden states that `complete_frames` gets."""

    def attention(self, positions: int) -> AttentionMemory:
        """Memory for one request of at most this many positions."""
        raise NotImplementedError

    def forward_rows(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        """[T, D] input rows at [T] int64 positions, which follow those in `memory` -> [T, D]."""
        raise NotImplementedError

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V] scores of code 0."""
        raise NotImplementedError
