"""A codec's transformer: causal attention over a sliding window of frames, exact per row.

Letters: B rows, T frames, C channels, H heads, K key-value heads, D head size, W the window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch.nn import functional

from cantata_layers.causal_convolutions import ConvCache
from cantata_layers.decoder_sizes import DecoderSizes
from cantata_layers.exact_layers import Linear, Rotation, silu
from cantata_layers.weights import Weights

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""[B, T, H, D] queries, and [B, W - 1 + T, K, D] keys and values of the frames before them and of
themselves -> [B, T, ...], H * D values."""


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
        self, x: torch.Tensor, rotation: Rotation, attend: Attend, past: ConvCache
    ) -> torch.Tensor:
        """[B, T, C] -> [B, T, C]."""
        batch, frames, _ = x.shape
        query = rotation(self._query(x).view(batch, frames, self._heads, self._head_dim))
        key = rotation(self._key(x).view(batch, frames, self._kv_heads, self._head_dim))
        contexts = (
            past.extend(rows, self._window - 1).view(batch, -1, self._kv_heads, self._head_dim)
            for rows in (key.flatten(2), self._value(x))
        )
        return self._output(attend(query, *contexts).view(batch, frames, -1))


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
        self, x: torch.Tensor, rotation: Rotation, attend: Attend, past: ConvCache
    ) -> torch.Tensor:
        attended = self._attention(self._attention_norm(x), rotation, attend, past)
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
        self._plan = plan_windows if device.type == "cpu" else plan_mask
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
        attend = self._plan(past.positions, frames, self._window)
        for layer in self._layers:
            x = layer(x, rotation, attend, past)
        return self._norm(x)


def plan_windows(positions: torch.Tensor, frames: int, window: int) -> Attend:
    """Attend to a copy of each frame's window, exactly: one product per frame and head over W keys.
    So the shape, and with it the order of summation, does not depend on the frames per call.

    Args:
        positions: [B], frames before this call.
        frames: T.
        window: W.
    """
    first = torch.arange(frames, device=positions.device) - (window - 1)
    places = torch.arange(window, device=positions.device)
    outside = positions[:, None, None] + first[:, None] + places < 0  # before the stream

    def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        batch, _, heads, size = query.shape
        keys, values = (
            context.unfold(1, window, 1).transpose(-1, -2).contiguous()
            for context in (keys, values)
        )
        kv_heads = keys.shape[2]
        grouped = query.view(batch, frames, kv_heads, heads // kv_heads, size)
        scores = grouped @ keys.transpose(-1, -2) * size**-0.5
        scores = scores.masked_fill(outside[:, :, None, None], -torch.inf)
        return torch.softmax(scores, dim=-1) @ values

    return attend


def plan_mask(positions: torch.Tensor, frames: int, window: int) -> Attend:
    """The same with the keys where they are, and a mask: a GPU's products are not exact anyway, and
    a copy of all windows would be W times the frames' keys and values. As `plan_windows`."""
    places = torch.arange(window - 1 + frames, device=positions.device)
    frame = torch.arange(frames, device=positions.device)[:, None]
    inside = (places >= frame) & (places < frame + window)
    seen = inside & (positions[:, None, None] + places >= window - 1)

    def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        (batch, _, kv_heads, size), heads = keys.shape, query.shape[2]
        # The heads that share keys stand in the place of frames: their keys are read once.
        shared = heads // kv_heads
        grouped = query.view(batch, frames, kv_heads, shared, size).transpose(1, 2).flatten(2, 3)
        mask = seen[:, None, :, None].expand(-1, 1, -1, shared, -1).flatten(2, 3)
        mixed = functional.scaled_dot_product_attention(
            grouped, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask
        )
        by_frame = mixed.reshape(batch, kv_heads, frames, shared, size).transpose(1, 2)
        return by_frame.reshape(batch, frames, heads * size)

    return attend
