"""Mimi's layers over [B, L, C]; what they compute does not depend on how L is chunked.

Source of the details: the package `pocket_tts`, modules/seanet.py, attention.py and resample.py.

Letters: B rows, L positions, C channels, H heads, D head size, W the window, S positions of a
frame.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch.nn import functional

from cantata_layers.activations import elu, gelu_tanh
from cantata_layers.causal_convolutions import CausalConv
from cantata_layers.conv_cache import ConvCache
from cantata_layers.linear import Linear
from cantata_layers.weights import Weights
from cantata_models.pocket_tts.sizes import SeanetSizes, WindowedSizes

MIMI = "mimi."
"""How the names of its weights begin."""
NORM_EPS = 1e-5


def read_part(path: Path, prefix: str, device: torch.device) -> Weights:
    """Return the weights of a file whose names begin so, by what follows.

    Raises:
        ConfigError: the file is damaged or has none.
    """
    return Weights(path.parent, prefix, device, stem=path.stem)


class SeanetUnit:
    """Two convolutions behind an activation each, and a residual connection."""

    def __init__(
        self, weights: Weights, name: str, size: int, sizes: SeanetSizes, dilation: int
    ) -> None:
        inner = size // sizes.compress
        self._dilated = CausalConv(
            weights, f"{name}.block.1.conv", size, inner, sizes.unit_kernel, dilation
        )
        self._pointwise = CausalConv(weights, f"{name}.block.3.conv", inner, size, 1)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        return x + self._pointwise(elu(self._dilated(elu(x), past)), past)


def load_seanet_units(
    weights: Weights, prefix: str, first: int, size: int, sizes: SeanetSizes
) -> list[SeanetUnit]:
    """Return the units of a stage; `first` is the number of the first one's module."""
    return [
        SeanetUnit(weights, f"{prefix}.{first + index}", size, sizes, sizes.dilation_base**index)
        for index in range(sizes.units)
    ]


class NeighbourRotation:
    """Rotary positions whose pairs are neighbours: cosines and sines of one call's positions."""

    def __init__(self, positions: torch.Tensor, length: int, sizes: WindowedSizes) -> None:
        half = torch.arange(sizes.size // sizes.heads // 2, device=positions.device).float()
        frequencies = torch.exp(half * (-math.log(sizes.period) / len(half)))
        counted = positions[:, None] + torch.arange(length, device=positions.device)
        angles = counted[..., None, None].float() * frequencies
        self._cos, self._sin = angles.cos(), angles.sin()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[B, L, H, D] -> [B, L, H, D], rotated."""
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = (even * self._cos - odd * self._sin, even * self._sin + odd * self._cos)
        return torch.stack(turned, dim=-1).flatten(-2)


class WindowedAttention:
    """Each position attends to itself and the W - 1 positions before it.

    The positions of a frame share one product over the W - 1 + S keys that some of them attend to.
    So the shape, and with it the order of summation, does not depend on the frames of a call.
    """

    def __init__(self, weights: Weights, name: str, sizes: WindowedSizes, stride: int) -> None:
        size = sizes.size
        self._heads, self._window, self._stride = sizes.heads, sizes.window, stride
        self._head_dim = size // sizes.heads
        self._inputs = Linear.load(weights, f"{name}.in_proj", size, 3 * size)
        self._output = Linear.load(weights, f"{name}.out_proj", size, size)

    def __call__(
        self,
        x: torch.Tensor,
        rotation: NeighbourRotation,
        mask: torch.Tensor,
        past: ConvCache,
    ) -> torch.Tensor:
        """[B, L, C] -> [B, L, C]; the mask [B, L / S, 1, S, W - 1 + S] is added to scores."""
        batch, length, size = x.shape
        heads = self._inputs(x).view(batch, length, 3, self._heads, self._head_dim)
        query, key, value = heads.unbind(2)
        keys = self._shared(rotation(key).flatten(2), past)
        values = self._shared(value.flatten(2), past)
        frames = length // self._stride
        queries = rotation(query).view(batch, frames, self._stride, self._heads, self._head_dim)
        scores = queries.transpose(2, 3) @ keys.transpose(-1, -2)
        weights = torch.softmax(scores * self._head_dim**-0.5 + mask, dim=-1)
        mixed = (weights @ values).transpose(2, 3)
        return self._output(mixed.reshape(batch, length, size))

    def _shared(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        """[B, L, C] -> [B, L / S, H, W - 1 + S, D]."""
        context = past.extend(x, self._window - 1)
        blocks = context.unfold(1, self._window - 1 + self._stride, self._stride)
        shape = (*blocks.shape[:2], self._heads, self._head_dim, -1)
        return blocks.reshape(shape).transpose(-1, -2).contiguous()


class WindowedLayer:
    """Attention and a perceptron, each scaled per channel before the residual addition."""

    def __init__(self, weights: Weights, name: str, sizes: WindowedSizes, stride: int) -> None:
        size = sizes.size
        self._size = size
        self._norms = [
            tuple(weights.take(f"{name}.{norm}.{part}", size) for part in ("weight", "bias"))
            for norm in ("norm1", "norm2")
        ]
        self._attention = WindowedAttention(weights, f"{name}.self_attn", sizes, stride)
        self._up = Linear.load(weights, f"{name}.linear1", size, sizes.inner)
        self._down = Linear.load(weights, f"{name}.linear2", sizes.inner, size)
        self._scales = [
            weights.take(f"{name}.layer_scale_{number}.scale", size) for number in (1, 2)
        ]

    def __call__(
        self,
        x: torch.Tensor,
        rotation: NeighbourRotation,
        mask: torch.Tensor,
        past: ConvCache,
    ) -> torch.Tensor:
        attended = self._attention(self._normed(x, 0), rotation, mask, past)
        x = x + self._scales[0] * attended
        return x + self._scales[1] * self._down(gelu_tanh(self._up(self._normed(x, 1))))

    def _normed(self, x: torch.Tensor, number: int) -> torch.Tensor:
        weight, bias = self._norms[number]
        return functional.layer_norm(x, (self._size,), weight, bias, eps=NORM_EPS)


class WindowedTransformer:
    """Layers over whole frames of S positions. [B, L, C] -> [B, L, C].

    Args:
        weights: of the codec.
        name: in front of `.transformer`.
        sizes: its shape.
        stride: S.
    """

    def __init__(self, weights: Weights, name: str, sizes: WindowedSizes, stride: int) -> None:
        self._sizes, self._stride = sizes, stride
        self._layers = [
            WindowedLayer(weights, f"{name}.transformer.layers.{index}", sizes, stride)
            for index in range(sizes.layers)
        ]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        start = past.positions * self._stride
        rotation = NeighbourRotation(start, x.shape[1], self._sizes)
        mask = self._mask(start, x.shape[1] // self._stride)
        for layer in self._layers:
            x = layer(x, rotation, mask, past)
        return x

    def _mask(self, start: torch.Tensor, frames: int) -> torch.Tensor:
        """[B, T, 1, S, W - 1 + S]: 0 where a position attends, else minus infinity."""
        stride, before = self._stride, self._sizes.window - 1
        own = torch.arange(stride, device=start.device)[:, None]
        shared = torch.arange(before + stride, device=start.device)
        near = (shared >= own) & (shared <= own + before)
        first = start[:, None] + stride * torch.arange(frames, device=start.device) - before
        inside = first[..., None] + shared >= 0
        mask = near & inside[:, :, None]
        zeros = torch.zeros(mask.shape, device=start.device)
        return zeros.masked_fill(~mask, -torch.inf)[:, :, None]
