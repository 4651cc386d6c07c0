"""A codec's transformer: causal attention over a sliding window of frames, exact per row.

Letters: B rows, T frames, C channels, H heads, D head size, W the window.
"""

from __future__ import annotations

from typing import Protocol

import torch

from cantata_layers.causal_convolutions import ConvCache
from cantata_layers.decoder_sizes import DecoderSizes
from cantata_layers.exact_layers import Linear, Rotation, silu
from cantata_layers.weights import Weights


class SlidingSizes(DecoderSizes, Protocol):
    """What a codec's config says about its transformer."""

    @property
    def window(self) -> int:
        """Frames that a frame attends to, itself included."""


class SlidingRmsNorm:
    """Divides by the root mean square. [..., C] -> [..., C]."""

    def __init__(self, weights: Weights, name: str, size: int, eps: float) -> None:
        self._gain, self._eps = weights.take(f"{name}.weight", size), eps

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.square().mean(dim=-1, keepdim=True)
        return self._gain * (x * torch.rsqrt(mean + self._eps))


class SlidingAttention:
    """Each frame attends to itself and the W - 1 frames before it."""

    def __init__(self, weights: Weights, name: str, config: SlidingSizes) -> None:
        self._heads, self._kv_heads, self._head_dim = config.heads, config.kv_heads, config.head_dim
        self._window, size = config.window, config.hidden_size
        queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        self._query = Linear.load(weights, f"{name}.q_proj", size, queries)
        self._key = Linear.load(weights, f"{name}.k_proj", size, keys)
        self._value = Linear.load(weights, f"{name}.v_proj", size, keys)
        self._output = Linear.load(weights, f"{name}.o_proj", queries, size)

    def __call__(
        self, x: torch.Tensor, rotation: Rotation, outside: torch.Tensor, past: ConvCache
    ) -> torch.Tensor:
        """[B, T, C] -> [B, T, C]; `outside` [B, T, W] is true before a stream's first frame."""
        batch, frames, _ = x.shape
        query = rotation(self._query(x).view(batch, frames, self._heads, self._head_dim))
        key = rotation(self._key(x).view(batch, frames, self._kv_heads, self._head_dim))
        keys = self._gather_windows(key.flatten(2), past)
        values = self._gather_windows(self._value(x), past)
        # One product per frame and head over exactly W keys. So the shape, and with it the order of
        # summation, does not depend on the number of frames per call.
        shared = self._heads // self._kv_heads
        grouped = query.view(batch, frames, self._kv_heads, shared, self._head_dim)
        scores = grouped @ keys.transpose(-1, -2) * self._head_dim**-0.5
        scores = scores.masked_fill(outside[:, :, None, None], -torch.inf)
        mixed = torch.softmax(scores, dim=-1) @ values
        return self._output(mixed.view(batch, frames, -1))

    def _gather_windows(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        """[B, T, kv heads * D] -> [B, T, kv heads, W, D]: the window of each frame."""
        context = past.extend(x, self._window - 1)
        batch, frames, _ = context.shape
        windows = context.view(batch, frames, self._kv_heads, self._head_dim)
        return windows.unfold(1, self._window, 1).transpose(-1, -2).contiguous()


class TransformerLayer:
    """Attention and a gated perceptron, each scaled per channel before the residual addition."""

    def __init__(self, weights: Weights, name: str, config: SlidingSizes) -> None:
        size, inner, eps = config.hidden_size, config.intermediate_size, config.rms_norm_eps
        self._attention_norm = SlidingRmsNorm(weights, f"{name}.input_layernorm", size, eps)
        self._attention = SlidingAttention(weights, f"{name}.self_attn", config)
        self._attention_scale = weights.take(f"{name}.self_attn_layer_scale.scale", size)
        self._mlp_norm = SlidingRmsNorm(weights, f"{name}.post_attention_layernorm", size, eps)
        self._gate = Linear.load(weights, f"{name}.mlp.gate_proj", size, inner)
        self._up = Linear.load(weights, f"{name}.mlp.up_proj", size, inner)
        self._down = Linear.load(weights, f"{name}.mlp.down_proj", inner, size)
        self._mlp_scale = weights.take(f"{name}.mlp_layer_scale.scale", size)

    def __call__(
        self, x: torch.Tensor, rotation: Rotation, outside: torch.Tensor, past: ConvCache
    ) -> torch.Tensor:
        attended = self._attention(self._attention_norm(x), rotation, outside, past)
        x = x + self._attention_scale * attended
        normed = self._mlp_norm(x)
        gated = silu(self._gate(normed)) * self._up(normed)
        return x + self._mlp_scale * self._down(gated)


class SlidingTransformer:
    """Layers and the norm behind them. [B, T, C] -> [B, T, C].

    Args:
        weights: of the codec.
        name: in front of `.layers` and `.norm`.
        config: its sizes.
        device: where it runs.
        rotation: how positions turn queries and keys.
    """

    def __init__(
        self,
        weights: Weights,
        name: str,
        config: SlidingSizes,
        device: torch.device,
        rotation: type[Rotation] = Rotation,
    ) -> None:
        self._window, self._rotation = config.window, rotation
        self._layers = [
            TransformerLayer(weights, f"{name}.layers.{index}", config)
            for index in range(config.layers)
        ]
        self._norm = SlidingRmsNorm(
            weights, f"{name}.norm", config.hidden_size, config.rms_norm_eps
        )
        even = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)
        self._inverse_frequencies = 1.0 / config.rope_theta ** (even / config.head_dim)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        frames = x.shape[1]
        rotation = self._rotation(past.positions, frames, self._inverse_frequencies)
        outside = self._find_outside(past.positions, frames)
        for layer in self._layers:
            x = layer(x, rotation, outside, past)
        return self._norm(x)

    def _find_outside(self, positions: torch.Tensor, frames: int) -> torch.Tensor:
        """[B] -> [B, T, W]: whether a position in a frame's window is before the stream."""
        first = torch.arange(frames, device=positions.device) - (self._window - 1)
        places = torch.arange(self._window, device=positions.device)
        return positions[:, None, None] + first[:, None] + places < 0
