"""What the audio tokenizers' encoder and decoder are made of: causal transformers over rings.

What a window of attention looks back on, the last keys and values of a layer, is in a ring. A
position's place in it is its number modulo the ring's length, so nothing is moved when positions
arrive. P of them arrive at a time. The ring holds those and the W - 1 before them; no position that
they attend to is overwritten.

A row's attention always has the same shape, and each key the same place, however many rows and
frames a call has: so its sums have the same order.

Letters: S slots, B rows of one call, L positions of one call, P positions that arrive at a time, W
the window, R = W - 1 + P places, C channels, H heads, D head size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch.nn import functional

from cantata_layers.exact_layers import Linear, Rotation
from cantata_layers.weights import Weights
from cantata_models.moss_tts.tokenizer_config import (
    ModuleConfig,
    MossTransformerConfig,
    PatchConfig,
)


def places(window: int, positions: int) -> int:
    """R: the length of a ring that takes `positions` at a time."""
    return window - 1 + positions


@dataclass(frozen=True, slots=True)
class Arrival:
    """P positions of each row, as the layers of one transformer see them."""

    places: torch.Tensor
    """[B, P] int64: where they go."""
    mask: torch.Tensor
    """[B, 1, P, R] float32: 0 for what a position attends to, -inf for the rest."""

    @classmethod
    def after(cls, before: torch.Tensor, positions: int, window: int) -> Arrival:
        """The next `positions` of rows with `before` [B] int64 positions before them."""
        length = places(window, positions)
        numbers = before[:, None] + torch.arange(positions, device=before.device)
        # Each place holds the latest position that belongs there; a negative one never came.
        latest = numbers[:, -1:]
        held = latest - (latest - torch.arange(length, device=before.device)) % length
        last = numbers[:, :, None]
        first = (last - window + 1).clamp(min=0)
        seen = (first <= held[:, None]) & (held[:, None] <= last)
        return cls(numbers % length, torch.where(seen, 0.0, -torch.inf)[:, None])


class Ring:
    """One layer's keys and values, for every slot.

    A slot that starts anew needs no reset: the mask hides what it held.
    """

    def __init__(
        self, slots: int, length: int, heads: int, head_dim: int, device: torch.device
    ) -> None:
        shape = (slots, length, heads, head_dim)
        self.keys = torch.zeros(shape, device=device)
        """[S, R, H, D] float32, as the values."""
        self.values = torch.zeros(shape, device=device)

    def attend(
        self,
        slots: torch.Tensor,
        arrival: Arrival,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> torch.Tensor:
        """Store keys and values of [B, P, H, D] and return what each position attends to.

        Args:
            slots: [B] int64, all different.
            query: [B, P, H, D]; so are `key` and `value`, and the result.
        """
        where = slots[:, None], arrival.places
        self.keys[where], self.values[where] = key, value
        attend = row_by_row if query.device.type == "cpu" else together
        return attend(query, self.keys, self.values, slots, arrival.mask)


def row_by_row(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """[B, P, H, D] -> [B, P, H, D], always in the shape of one row, and without a copy of rings."""
    rows = [
        _attention(
            query[row : row + 1],
            keys[slot : slot + 1],
            values[slot : slot + 1],
            mask[row : row + 1],
        )
        for row, slot in enumerate(slots.tolist())
    ]
    return torch.cat(rows)


def together(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """The same as `row_by_row`, for all rows at once."""
    return _attention(query, keys[slots], values[slots], mask)


def _attention(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """[B, P, H, D] x [B, R, H, D] -> [B, P, H, D]."""
    output = functional.scaled_dot_product_attention(
        query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask
    )
    return output.transpose(1, 2)


LAYER_NORM_EPS = 1e-5

Rings: TypeAlias = tuple[Ring, ...]
"""One for each layer."""


class MossCodecTransformer:
    """[B, L, inputs] -> [B, L, outputs]. `frames`: that arrive at a time; L is a multiple of their
    positions."""

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
            _CodecLayer(weights, f"{name}.transformer.layers.{index}", config)
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


class _CodecLayer:
    """Attention and a perceptron, each scaled per channel and added to its input."""

    def __init__(self, weights: Weights, name: str, config: MossTransformerConfig) -> None:
        width, inner = config.width, config.inner_width
        self._heads, self._head_dim = config.heads, config.head_dim
        self._attention_norm = _LayerNorm(weights, f"{name}.norm1", width)
        joined = weights.take(f"{name}.self_attn.in_proj.weight", 3 * width, width)
        self._query_key_value = Linear(_reorder_pairs(joined, config))
        self._mix = _load_scaled(weights, name, "self_attn.out_proj", "layer_scale_1", width, width)
        self._perceptron_norm = _LayerNorm(weights, f"{name}.norm2", width)
        self._up = Linear.load(weights, f"{name}.ffn.0", width, inner)
        self._down = _load_scaled(weights, name, "ffn.2", "layer_scale_2", inner, width)

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
        rotated = rotation(joined[:, :, : 2 * self._heads])
        query, key = rotated.chunk(2, dim=2)
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


def _load_scaled(
    weights: Weights, layer: str, projection: str, scale: str, inputs: int, outputs: int
) -> Linear:
    """Load a layer's projection, its outputs scaled per channel."""
    weight = weights.take(f"{layer}.{projection}.weight", outputs, inputs)
    return Linear(weights.take(f"{layer}.{scale}.scale", outputs)[:, None] * weight)


def _reorder_pairs(joined: torch.Tensor, config: MossTransformerConfig) -> torch.Tensor:
    """Reorder the rows for queries and keys: [3 C, C] -> [3 C, C].

    The checkpoint's positions turn neighbouring channels of a head, `Rotation` turns its halves. A
    product of a query and a key is the same in every order of their channels.
    """
    queries_keys, values = joined[: 2 * config.width], joined[2 * config.width :]
    by_pair = queries_keys.view(2 * config.heads, config.head_dim // 2, 2, config.width)
    return torch.cat([by_pair.transpose(1, 2).reshape(2 * config.width, config.width), values])


def join(x: torch.Tensor, size: int) -> torch.Tensor:
    """[B, L * P, C] -> [B, L, C * P]; a channel's P positions become neighbours."""
    batch, length, channels = x.shape
    patches = x.view(batch, length // size, size, channels)
    return patches.transpose(2, 3).reshape(batch, length // size, channels * size)


def split(x: torch.Tensor, size: int) -> torch.Tensor:
    """[B, L, C * P] -> [B, L * P, C]; the inverse of `join`."""
    batch, length, channels = x.shape
    patches = x.view(batch, length, channels // size, size)
    return patches.transpose(2, 3).reshape(batch, length * size, channels // size)


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of every slot's stream."""

    frames: torch.Tensor
    """[S] int64: number of frames so far."""
    rings: tuple[Rings, ...]
    """What each transformer looks back on."""


class MossCodecStack:
    """The modules of the encoder or the decoder, streaming.

    Args:
        resize: `patches.join` in the encoder, `patches.split` in the decoder.
        frames: that arrive at a time; a call has a multiple of them.
    """

    def __init__(
        self,
        weights: Weights,
        configs: tuple[ModuleConfig, ...],
        resize: Callable[[torch.Tensor, int], torch.Tensor],
        frames: int,
        device: torch.device,
    ) -> None:
        self._resize, self._device = resize, device
        self._modules = [
            config
            if isinstance(config, PatchConfig)
            else MossCodecTransformer(weights, str(index), config, frames, device)
            for index, config in enumerate(configs)
        ]

    def init_state(self, slots: int) -> StreamState:
        """Return the state of `slots` streams that have not begun."""
        frames = torch.zeros(slots, dtype=torch.int64, device=self._device)
        transformers = (
            module for module in self._modules if isinstance(module, MossCodecTransformer)
        )
        return StreamState(frames, tuple(module.new_rings(slots) for module in transformers))

    def advance(
        self, x: torch.Tensor, state: StreamState, slots: torch.Tensor, frames: int
    ) -> torch.Tensor:
        """Continue streams by `frames` each: [B, L, inputs] -> [B, L', outputs].

        Args:
            x: the next positions of these streams.
            state: from `init_state`; updated in place.
            slots: [B] int64, all different.
        """
        before, rings = state.frames[slots], iter(state.rings)
        for module in self._modules:
            if isinstance(module, PatchConfig):
                x = self._resize(x, module.size)
            else:
                x = module(x, next(rings), slots, before)
        state.frames[slots] = before + frames
        return x


def state_bytes(configs: tuple[ModuleConfig, ...], frames: int) -> int:
    """Bytes that one slot takes of a stack's state, if `frames` arrive at a time."""
    number = torch.int64.itemsize
    kept = (
        2 * config.layers * config.width * places(config.window, frames * config.frame_positions)
        for config in configs
        if not isinstance(config, PatchConfig)
    )
    return number + torch.float32.itemsize * sum(kept)
