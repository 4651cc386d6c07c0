"""The layers of the networks within a patch: a short Llama over a few positions, each seeing all.

Every operation gives a row the same bits among any number of rows. Modules are named as in the
checkpoint; projections of one input are fused.

Letters: R rows, T positions, H hidden size, D head size.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.activations import silu
from cantata_layers.code_predictor import FusedLinear, RmsNorm
from cantata_models.voxcpm2.config import Stack
from cantata_models.voxcpm2.networks.long_rope import Turns, build_turns


class LocalTransformer(nn.Module):
    """The layers and the norm behind them.

    Args:
        stack: its shape; it has positions.
        positions: T.
    """

    def __init__(self, stack: Stack, positions: int) -> None:
        super().__init__()
        assert stack.rope is not None
        self.layers = nn.ModuleList(LocalLayer(stack) for _ in range(stack.layers))
        self.norm = RmsNorm(stack.hidden_size, stack.rms_norm_eps)
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        cos, sin = build_turns(stack.rope, positions)
        self.register_buffer("cos", torch.cat([cos, cos], dim=1)[:, None], persistent=False)
        self.register_buffer("sin", torch.cat([-sin, sin], dim=1)[:, None], persistent=False)

    def forward(self, x: torch.Tensor, wanted: slice) -> torch.Tensor:
        """[R, T, H] -> [R, W, H], of the wanted positions alone."""
        turns = self.cos, self.sin
        *others, last = self.layers
        for layer in others:
            x = layer(x, turns, slice(None))
        return torch.as_tensor(self.norm(last(x, turns, wanted)))


class LocalLayer(nn.Module):
    """Attention and perceptron, each with a norm before it and a residual connection."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        size, eps = stack.hidden_size, stack.rms_norm_eps
        self.input_layernorm = RmsNorm(size, eps)
        self.self_attn = LocalAttention(stack)
        self.post_attention_layernorm = RmsNorm(size, eps)
        self.mlp = LocalPerceptron(size, stack.intermediate_size)

    def forward(self, x: torch.Tensor, turns: Turns, wanted: slice) -> torch.Tensor:
        """[R, T, H] and angles [T, 1, D] -> [R, W, H]."""
        x = x[:, wanted] + self.self_attn(self.input_layernorm(x), turns, wanted)
        return x + torch.as_tensor(self.mlp(self.post_attention_layernorm(x)))


class LocalAttention(nn.Module):
    """Each position attends to all."""

    def __init__(self, stack: Stack) -> None:
        super().__init__()
        self._head_dim, self._heads, self._kv_heads = stack.head_dim, stack.heads, stack.kv_heads
        queries, keys = stack.heads * stack.head_dim, stack.kv_heads * stack.head_dim
        self.qkv_proj = FusedLinear(stack.hidden_size, {"q": queries, "k": keys, "v": keys})
        self.o_proj = RowLinear(queries, stack.hidden_size, bias=False)

    def forward(self, x: torch.Tensor, turns: Turns, wanted: slice) -> torch.Tensor:
        """[R, T, H] and angles [T, 1, D] -> [R, W, H]."""
        heads = self.qkv_proj(x).unflatten(-1, (-1, self._head_dim))
        moved, value = heads.tensor_split((self._heads + self._kv_heads,), dim=2)
        query, key = turned_whole(moved, turns).tensor_split((self._heads,), dim=2)
        query, key, value = (part.transpose(1, 2) for part in (query[:, wanted], key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
        return torch.as_tensor(self.o_proj(mixed.transpose(1, 2).flatten(2)))


class LocalPerceptron(nn.Module):
    """Two products with a gate between them."""

    def __init__(self, size: int, inner: int) -> None:
        super().__init__()
        self.gate_up_proj = FusedLinear(size, {0: inner, 1: inner})
        self.down_proj = RowLinear(inner, size, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[R, T, H] -> [R, T, H]."""
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return torch.as_tensor(self.down_proj(silu(gate) * up))


def turned_whole(x: torch.Tensor, turns: Turns) -> torch.Tensor:
    """As `turned`, with whole angles [..., D]: each cosine twice, and each sine, first negated."""
    cos, sin = turns
    low, high = x.chunk(2, dim=-1)
    return (x * cos).add_(torch.cat([high, low], dim=-1) * sin).to(x.dtype)
