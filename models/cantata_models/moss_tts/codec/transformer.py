"""A stage of the tokenizer: a transformer at one rate, causal, over a window of positions.

Letters: B rows, L positions of one call, P positions that arrive at a time, C channels, H heads,
D head size.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import torch
from torch.nn import functional

from cantata_layers.linear import Linear
from cantata_layers.rotation import Rotation
from cantata_layers.weights import Weights
from cantata_models.moss_tts.codec.config import MossTransformerConfig
from cantata_models.moss_tts.codec.rings import Arrival, Ring, places

LAYER_NORM_EPS = 1e-5

Rings: TypeAlias = tuple[Ring, ...]
"""One for each layer."""


class MossCodecTransformer:
    """[B, L, inputs] -> [B, L, outputs].

    Args:
        weights: of the encoder or the decoder.
        name: the module's number in it.
        config: its sizes.
        frames: that arrive at a time; L is a multiple of their positions.
        device: where it runs.
    """

    def __init__(
        self,
        weights: Weights,
        name: str,
        config: MossTransformerConfig,
        frames: int,
        device: torch.device,
    ) -> None:
        self._config, self._device = config, device
        self._arriving = frames * config.frame_positions
        self._into = Linear.load(weights, f"{name}.input_proj", config.inputs, config.width)
        self._layers = [
            _Layer(weights, f"{name}.transformer.layers.{index}", config)
            for index in range(config.layers)
        ]
        self._out = Linear.load(weights, f"{name}.output_proj", config.width, config.outputs)
        pairs = torch.arange(config.head_dim // 2, dtype=torch.float32, device=device)
        # Late in a long stream, an angle is thousands of turns: another way to round the
        # frequencies would show.
        exponent = -math.log(config.rope_theta) * 2 / config.head_dim
        self._frequencies = torch.exp(pairs * exponent)

    def new_rings(self, slots: int) -> Rings:
        """Return what the layers keep of `slots` streams."""
        config, length = self._config, places(self._config.window, self._arriving)
        return tuple(
            Ring(slots, length, config.heads, config.head_dim, self._device) for _ in self._layers
        )

    def __call__(
        self, x: torch.Tensor, rings: Rings, slots: torch.Tensor, frames: torch.Tensor
    ) -> torch.Tensor:
        """Continue the streams in `slots` [B], which have had `frames` [B] int64 so far."""
        before, length = frames * self._config.frame_positions, x.shape[1]
        rotation = Rotation(before, length, self._frequencies)
        arrivals = [
            Arrival.after(before + start, self._arriving, self._config.window)
            for start in range(0, length, self._arriving)
        ]
        x = self._into(x)
        for layer, ring in zip(self._layers, rings, strict=True):
            x = layer(x, rotation, arrivals, ring, slots)
        return self._out(x)


class _Layer:
    """Attention and a perceptron, each scaled per channel and added to its input."""

    def __init__(self, weights: Weights, name: str, config: MossTransformerConfig) -> None:
        width, inner = config.width, config.inner_width
        self._heads, self._head_dim = config.heads, config.head_dim
        self._attention_norm = _LayerNorm(weights, f"{name}.norm1", width)
        joined = weights.take(f"{name}.self_attn.in_proj.weight", 3 * width, width)
        self._query_key_value = Linear(_pairs_as_halves(joined, config))
        self._mix = _scaled(weights, name, "self_attn.out_proj", "layer_scale_1", width, width)
        self._perceptron_norm = _LayerNorm(weights, f"{name}.norm2", width)
        self._up = Linear.load(weights, f"{name}.ffn.0", width, inner)
        self._down = _scaled(weights, name, "ffn.2", "layer_scale_2", inner, width)

    def __call__(
        self,
        x: torch.Tensor,
        rotation: Rotation,
        arrivals: list[Arrival],
        ring: Ring,
        slots: torch.Tensor,
    ) -> torch.Tensor:
        attended = self._attend(self._attention_norm(x), rotation, arrivals, ring, slots)
        x = x + self._mix(attended)
        return x + self._down(functional.gelu(self._up(self._perceptron_norm(x))))

    def _attend(
        self,
        x: torch.Tensor,
        rotation: Rotation,
        arrivals: list[Arrival],
        ring: Ring,
        slots: torch.Tensor,
    ) -> torch.Tensor:
        """[B, L, C] -> [B, L, C], P positions after P positions."""
        batch, length, width = x.shape
        joined = self._query_key_value(x).view(batch, length, 3 * self._heads, self._head_dim)
        turned = rotation(joined[:, :, : 2 * self._heads])
        query, key = turned.chunk(2, dim=2)
        value = joined[:, :, 2 * self._heads :]
        count = len(arrivals)
        steps = zip(
            arrivals, query.chunk(count, 1), key.chunk(count, 1), value.chunk(count, 1), strict=True
        )
        mixed = [ring.attend(slots, arrival, *arriving) for arrival, *arriving in steps]
        return torch.cat(mixed, dim=1).reshape(batch, length, width)


class _LayerNorm:
    """[..., C] -> [..., C]."""

    def __init__(self, weights: Weights, name: str, width: int) -> None:
        self._shape = (width,)
        self._gain = weights.take(f"{name}.weight", width)
        self._bias = weights.take(f"{name}.bias", width)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, self._shape, self._gain, self._bias, LAYER_NORM_EPS)


def _scaled(
    weights: Weights, layer: str, projection: str, scale: str, inputs: int, outputs: int
) -> Linear:
    """Load a layer's projection, its outputs scaled per channel."""
    weight = weights.take(f"{layer}.{projection}.weight", outputs, inputs)
    return Linear(weights.take(f"{layer}.{scale}.scale", outputs)[:, None] * weight)


def _pairs_as_halves(joined: torch.Tensor, config: MossTransformerConfig) -> torch.Tensor:
    """Reorder the rows for queries and keys: [3 C, C] -> [3 C, C].

    The checkpoint's positions turn neighbouring channels of a head, `Rotation` turns its halves. A
    product of a query and a key is the same in every order of their channels.
    """
    turned, values = joined[: 2 * config.width], joined[2 * config.width :]
    by_pair = turned.view(2 * config.heads, config.head_dim // 2, 2, config.width)
    return torch.cat([by_pair.transpose(1, 2).reshape(2 * config.width, config.width), values])
