"""Qwen3's transformer without vLLM, for plain talkers: rows in, hidden states out.

Its parameters have the names that vLLM's layers have, so `ParameterLoader` fills it. It computes in
the order of vLLM's layers; with the same kernels it gives the same bits.

Letters: N positions, D hidden size, H query heads, K key-value heads, E head size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from cantata.contract.model.fused_operators import silu_and_multiply
from cantata.contract.model.plain_talker import AttentionMemory, BackboneKernels, PlainTalker
from cantata.contract.model.row_products import Product, RowLinear
from cantata_layers.code_predictor import FusedLinear
from cantata_layers.qwen3_config import Qwen3Sizes


class _NormWeight(nn.Module):
    """The weight of a norm, which the kernels compute."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


class _PlainAttention(nn.Module):
    """Grouped-query attention with normalized queries and keys.

    Args:
        index: of the layer, in the attention memory.
    """

    def __init__(self, sizes: Qwen3Sizes, kernels: BackboneKernels, index: int) -> None:
        super().__init__()
        self._size, self._epsilon = sizes.head_dim, sizes.rms_norm_eps
        self._kernels, self._index = kernels, index
        q_size, kv_size = (heads * sizes.head_dim for heads in (sizes.heads, sizes.kv_heads))
        self._widths = (q_size, kv_size, kv_size)
        parts: dict[str | int, int] = {"q": q_size, "k": kv_size, "v": kv_size}
        self.qkv_proj = FusedLinear(sizes.hidden_size, parts)
        self.o_proj = RowLinear(q_size, sizes.hidden_size, bias=False)
        self.q_norm, self.k_norm = _NormWeight(sizes.head_dim), _NormWeight(sizes.head_dim)

    def forward(self, x: torch.Tensor, rotary: Any, memory: AttentionMemory) -> torch.Tensor:
        """[N, D] -> [N, D]."""
        queries, keys, values = self.qkv_proj(x).split(self._widths, dim=-1)
        queries = self._normalize(queries, self.q_norm.weight)
        keys = self._normalize(keys, self.k_norm.weight)
        self._kernels.rotate(queries, keys, self._size, rotary)
        by_head = [rows.view(len(x), -1, self._size) for rows in (queries, keys, values)]
        return torch.as_tensor(self.o_proj(memory.attend(self._index, *by_head)))

    def _normalize(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        by_head = rows.view(len(rows), -1, self._size)
        return self._kernels.rms_norm(by_head, weight, self._epsilon).view(rows.shape)


class _PlainFeedForward(nn.Module):
    """SwiGLU."""

    def __init__(self, sizes: Qwen3Sizes) -> None:
        super().__init__()
        inner = sizes.intermediate_size
        self.gate_up_proj = FusedLinear(sizes.hidden_size, {0: inner, 1: inner})
        self.down_proj = RowLinear(inner, sizes.hidden_size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.down_proj(silu_and_multiply(self.gate_up_proj(x))))


class _PlainLayer(nn.Module):
    """Attention and feed-forward, each after a norm."""

    def __init__(self, sizes: Qwen3Sizes, kernels: BackboneKernels, index: int) -> None:
        super().__init__()
        self._kernels, self._epsilon = kernels, sizes.rms_norm_eps
        self.input_layernorm = _NormWeight(sizes.hidden_size)
        self.self_attn = _PlainAttention(sizes, kernels, index)
        self.post_attention_layernorm = _NormWeight(sizes.hidden_size)
        self.mlp = _PlainFeedForward(sizes)

    def forward(
        self, x: torch.Tensor, residual: torch.Tensor | None, rotary: Any, memory: AttentionMemory
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[N, D] each. The update is returned apart from `residual`; the next norm adds the two."""
        kernels, before = self._kernels, self.input_layernorm.weight
        if residual is None:
            residual, x = x, kernels.rms_norm(x, before, self._epsilon)
        else:
            x = kernels.add_rms_norm(x, residual, before, self._epsilon)
        x = self.self_attn(x, rotary, memory)
        behind = self.post_attention_layernorm.weight
        return self.mlp(kernels.add_rms_norm(x, residual, behind, self._epsilon)), residual


class PlainQwen3(nn.Module):
    """All layers and the norm behind them."""

    rotary_table: torch.Tensor

    def __init__(self, sizes: Qwen3Sizes, kernels: BackboneKernels) -> None:
        super().__init__()
        self._sizes, self._kernels = sizes, kernels
        self.layers = nn.ModuleList(
            _PlainLayer(sizes, kernels, index) for index in range(sizes.layers)
        )
        self.norm = _NormWeight(sizes.hidden_size)
        self.register_buffer("rotary_table", _compute_table(sizes), persistent=False)

    def attention(self, requests: int, positions: int) -> AttentionMemory:
        """As `PlainTalker.attention`."""
        c = self._sizes
        return self._kernels.attention(
            c.layers, c.heads, c.kv_heads, c.head_dim, requests=requests, positions=positions
        )

    def forward(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        """[N, D] rows at [N] int64 positions -> [N, D] hidden states."""
        residual: torch.Tensor | None = None
        rotary = self._kernels.look_up_rotary(self.rotary_table, positions)
        for layer in self.layers:
            rows, residual = layer(rows, residual, rotary, memory)
        assert residual is not None, "a backbone has layers"
        epsilon = self._sizes.rms_norm_eps
        return self._kernels.add_rms_norm(rows, residual, self.norm.weight, epsilon)

    def multiply_by(self, make_product: Callable[[torch.Tensor], Product]) -> None:
        """Multiply by what is made of each weight, and give the weights up."""
        for module in self.modules():
            if isinstance(module, RowLinear):
                module.multiply_by(make_product(module.weight))


class PlainQwen3Talker(PlainTalker):
    """A plain talker whose backbone is Qwen3's."""

    backbone: PlainQwen3

    def attention(self, requests: int, positions: int) -> AttentionMemory:
        """Memory for this many requests of at most so many positions."""
        return self.backbone.attention(requests, positions)

    def forward_rows(
        self, rows: torch.Tensor, positions: torch.Tensor, memory: AttentionMemory
    ) -> torch.Tensor:
        """[N, D] rows at [N] positions -> [N, D] hidden states."""
        hidden: torch.Tensor = self.backbone(rows, positions, memory)
        return hidden


def _compute_table(sizes: Qwen3Sizes) -> torch.Tensor:
    """[positions, E] float32: cosines, then sines, computed as in vLLM's rotary layer."""
    exponents = torch.arange(0, sizes.head_dim, 2, dtype=torch.float32) / sizes.head_dim
    positions = torch.arange(sizes.max_positions, dtype=torch.float32)
    angles = torch.outer(positions, 1.0 / sizes.rope_theta**exponents)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)
