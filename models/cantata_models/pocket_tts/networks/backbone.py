"""The language model's layers, on vLLM's.

Some positions have no input: they are of a published voice, whose keys and values are given.
Modules are named as in the checkpoint. Source of the details: the package `pocket_tts`,
modules/transformer.py.

Letters: N rows, H hidden size, D head size, K numbers of a position's keys, L layers, P positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.linear import ColumnParallelLinear, RowParallelLinear

from cantata_layers.activations import gelu_tanh
from cantata_models.pocket_tts.sizes import BackboneSizes

EPS = 1e-5


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """Keys and values of the positions that have no input."""

    rows: torch.Tensor
    """[G] int64: where they are among the N."""
    values: torch.Tensor
    """[L, 2, G, K]: keys, turned already, and values."""


class Backbone(nn.Module):
    """Rows in, hidden states out.

    Args:
        sizes: its shape.
        vllm_config: of the engine; its max_model_len bounds the positions.
    """

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            BackboneLayer(sizes, vllm_config, f"layers.{index}") for index in range(sizes.layers)
        )
        half = torch.arange(sizes.head_dim // 2, dtype=torch.float32)
        frequencies = torch.exp(half * (-math.log(sizes.period) * 2 / sizes.head_dim))
        positions = torch.arange(vllm_config.model_config.max_model_len, dtype=torch.float32)
        angles = positions[:, None, None] * frequencies
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(
        self, positions: torch.Tensor, rows: torch.Tensor, given: GivenKeys | None
    ) -> torch.Tensor:
        """[N] positions and [N, H] rows -> [N, H] hidden states."""
        turns = self.cos[positions], self.sin[positions]
        for index, layer in enumerate(self.layers):
            own = None if given is None else (given.rows, given.values[index])
            rows = layer(turns, rows, own)
        return rows


class BackboneLayer(nn.Module):
    """Attention and perceptron, each with a norm before it and a residual connection."""

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(sizes.size, eps=EPS)
        self.self_attn = BackboneAttention(sizes, vllm_config, f"{prefix}.self_attn")
        self.norm2 = nn.LayerNorm(sizes.size, eps=EPS)
        self.linear1 = ColumnParallelLinear(sizes.size, sizes.inner, bias=False)
        self.linear2 = RowParallelLinear(sizes.inner, sizes.size, bias=False)

    def forward(
        self,
        turns: tuple[torch.Tensor, torch.Tensor],
        rows: torch.Tensor,
        given: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> torch.Tensor:
        """[N, H] -> [N, H]."""
        rows = rows + self.self_attn(turns, self.norm1(rows), given)
        inner = gelu_tanh(self.linear1(self.norm2(rows))[0])
        return rows + torch.as_tensor(self.linear2(inner)[0])


class BackboneAttention(nn.Module):
    """Causal attention over a request's positions."""

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self._head_dim = sizes.head_dim
        queries = sizes.heads * sizes.head_dim
        self._split = (queries, sizes.keys, sizes.keys)
        self.in_proj = ColumnParallelLinear(sizes.size, sum(self._split), bias=False)
        self.out_proj = RowParallelLinear(queries, sizes.size, bias=False)
        self.attn = Attention(
            sizes.heads,
            sizes.head_dim,
            sizes.head_dim**-0.5,
            num_kv_heads=sizes.kv_heads,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn",
        )

    def forward(
        self,
        turns: tuple[torch.Tensor, torch.Tensor],
        rows: torch.Tensor,
        given: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> torch.Tensor:
        """[N, H] and angles [N, 1, D / 2] -> [N, H]."""
        query, key, value = self.in_proj(rows)[0].split(self._split, dim=-1)
        query, key = (
            turned(part.unflatten(-1, (-1, self._head_dim)), turns).flatten(1)
            for part in (query, key)
        )
        if given is not None:
            where, (keys, values) = given
            key = key.index_copy(0, where, keys)
            value = value.index_copy(0, where, values)
        return torch.as_tensor(self.out_proj(self.attn(query, key, value.contiguous()))[0])


def turned(x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """[..., D] rotated by angles [..., D / 2] that broadcast: neighbours are a pair."""
    cos, sin = turns
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
