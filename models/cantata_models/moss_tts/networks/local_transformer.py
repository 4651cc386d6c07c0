"""The local transformer: a short stack of GPT-2 blocks over the positions of one frame.

The keys and values of one frame fit in one small tensor, so no cache outlives a frame. Every
operation gives a row the same bits among any number of rows.

Letters: R requests, T new positions, P positions of a frame, D hidden size, H heads, E head size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear
from cantata_layers.activations import silu
from cantata_models.moss_tts.config.shared import Activation, Gpt2Stack


@dataclass(slots=True)
class FramePast:
    """Keys and values of the positions of one frame so far."""

    keys: torch.Tensor
    """[layers, R, H, P, E], as `values`."""
    values: torch.Tensor
    length: int = 0
    """Filled positions."""


class MossLocalTransformer(nn.Module):
    """The stack with its last norm.

    Args:
        config: of the stack.
        positions: P.
    """

    def __init__(self, config: Gpt2Stack, positions: int) -> None:
        super().__init__()
        self._config = config
        self._positions = positions
        self.h = nn.ModuleList(MossLocalBlock(config) for _ in range(config.layers))
        self.ln_f = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.cos: torch.Tensor
        self.sin: torch.Tensor
        cos, sin = rotary_angles(positions, config.head_dim, config.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def begin(self, rows: torch.Tensor) -> FramePast:
        """Return the empty past of R frames, on the device and of the dtype of these rows."""
        config = self._config
        shape = (config.layers, len(rows), config.heads, self._positions, config.head_dim)
        return FramePast(rows.new_empty(shape), rows.new_empty(shape))

    def forward(self, rows: torch.Tensor, past: FramePast) -> torch.Tensor:
        """[R, T, D] at the next T positions -> [R, T, D]. Extends the past."""
        start, end = past.length, past.length + rows.shape[1]
        turns = (self.cos[start:end], self.sin[start:end])
        for block, keys, values in zip(self.h, past.keys, past.values, strict=True):
            rows = block(rows, turns, keys[:, :, :end], values[:, :, :end])
        past.length = end
        return torch.as_tensor(self.ln_f(rows))


class MossLocalBlock(nn.Module):
    """Attention and feed-forward, each with a norm before it and a residual connection."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.attn = MossLocalAttention(config)
        self.ln_2 = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.mlp = MossLocalFeedForward(config)

    def forward(
        self,
        rows: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """[R, T, D] -> [R, T, D]; fills the last T of [R, H, ., E] keys and values."""
        rows = rows + self.attn(self.ln_1(rows), turns, keys, values)
        return rows + torch.as_tensor(self.mlp(self.ln_2(rows)))


class MossLocalAttention(nn.Module):
    """Each position attends to itself and to those before it."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self._heads, self._head_dim = config.heads, config.head_dim
        size = config.hidden_size
        self.c_attn = RowLinear(size, 3 * size)
        self.c_proj = RowLinear(size, size)

    def forward(
        self,
        rows: torch.Tensor,
        turns: tuple[torch.Tensor, torch.Tensor],
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        requests, new, size = rows.shape
        heads = self.c_attn(rows).view(requests, new, 3, self._heads, self._head_dim)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        keys[:, :, -new:] = turned(key, *turns)
        values[:, :, -new:] = value
        # Several new positions are the first ones of a frame, so the mask is square.
        mixed = functional.scaled_dot_product_attention(
            turned(query, *turns), keys, values, is_causal=new > 1
        )
        return torch.as_tensor(self.c_proj(mixed.transpose(1, 2).reshape(requests, new, size)))


class MossLocalFeedForward(nn.Module):
    """Two products with a nonlinearity between them."""

    def __init__(self, config: Gpt2Stack) -> None:
        super().__init__()
        self._activate = ACTIVATIONS[config.activation]
        self.fc_in = RowLinear(config.hidden_size, config.intermediate_size)
        self.fc_out = RowLinear(config.intermediate_size, config.hidden_size)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """[..., D] -> [..., D]."""
        return torch.as_tensor(self.fc_out(self._activate(self.fc_in(rows))))


def rotary_angles(positions: int, head_dim: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return [P, E] float32 cosines and sines of the positions, each of a pair's two alike."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angles = torch.arange(positions, dtype=torch.float32)[:, None] * (1.0 / theta**exponents)
    angles = angles.repeat_interleave(2, dim=-1)
    return angles.cos(), angles.sin()


def turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[..., T, E] with each pair of neighbours turned by [T, E] angles, in the dtype of `x`."""
    across = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    return (x * cos + across * sin).to(x.dtype)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    """GELU (Hendrycks & Gimpel 2016) in its approximation by tanh; by hand for the reason that
    `silu` has."""
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


ACTIVATIONS = {Activation.SILU: silu, Activation.GELU_NEW: gelu_new}
