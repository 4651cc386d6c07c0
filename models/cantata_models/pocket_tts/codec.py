"""Mimi's decoder from latents to sound: causal, with explicit streaming state per slot.

No layer looks ahead, so every frame yields its samples at once, and streaming gives the same result
as decoding the whole. What the layers compute does not depend on how L is chunked. Source of the
details: the package `pocket_tts`, modules/seanet.py, attention.py and resample.py.

Letters: B rows, T frames, E numbers of a latent, L positions, C channels, S positions of a frame,
H heads, D head size, W the window.
"""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path

import torch
from torch.nn import functional

from cantata_layers.causal_convolutions import CausalConv, CausalUpsample, ConvCache
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.exact_layers import Linear, elu, gelu_tanh
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.pocket_tts.config import SeanetSizes, WindowedSizes, load_config
from cantata_models.pocket_tts.prompt import FRAME_COLUMNS

MIMI = "mimi."
"""How the names of its weights begin."""
NORM_EPS = 1e-5


def read_part(path: Path, prefix: str, device: torch.device) -> Weights:
    """Return the weights of a file whose names begin so, by what follows. Raises ConfigError: the
    file is damaged or has none."""
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


class InterleavedRotary:
    """Rotary positions whose pairs are neighbours: as complex numbers, of one call's positions."""

    def __init__(self, positions: torch.Tensor, length: int, sizes: WindowedSizes) -> None:
        half = torch.arange(sizes.size // sizes.heads // 2, device=positions.device).float()
        frequencies = torch.exp(half * (-math.log(sizes.period) / len(half)))
        counted = positions[:, None] + torch.arange(length, device=positions.device)
        angles = counted[..., None, None].float() * frequencies
        self._rotary = torch.complex(angles.cos(), angles.sin())

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[B, L, H, D] -> [B, L, H, D], rotated."""
        pairs = torch.view_as_complex(x.view(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * self._rotary).flatten(-2)


class WindowedAttention:
    """Each position attends to itself and the W - 1 positions before it.

    The positions of a frame share one product over the W - 1 + S keys that some of them attend to.
    So the shape, and with it the order of summation, depends neither on the frames of a call nor on
    the rows beside it.
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
        rotation: InterleavedRotary,
        mask: torch.Tensor,
        past: ConvCache,
    ) -> torch.Tensor:
        """[B, L, C] -> [B, L, C]; the mask [B, L / S, 1, S, W - 1 + S] is added to scores."""
        batch, length, size = x.shape
        made = self._inputs(x).view(batch, length, 3, self._heads, self._head_dim)
        rotated = rotation(made[:, :, :2].flatten(2, 3))
        query, key = rotated[:, :, : self._heads], rotated[:, :, self._heads :]
        shape = (batch, -1, self._stride, self._heads, self._head_dim)
        queries = query.view(shape).transpose(2, 3)
        keys, values = self._seen(key, past), self._seen(made[:, :, 2], past)
        if x.device.type == "cpu":
            # WHY one by one: the windows overlap. Together they would have to be copied, and a copy
            # may be multiplied in another order than the one window of a stream alone.
            places = product(range(batch), range(length // self._stride))
            mixed = torch.stack(
                [self._attend(queries[at], keys[at], values[at], mask[at]) for at in places]
            )
        else:
            mixed = self._attend(queries, keys, values, mask)
        return self._output(mixed.transpose(-2, -3).reshape(batch, length, size))

    def _seen(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        """[B, L, H, D] -> [B, L / S, H, D, W - 1 + S], of each frame."""
        context = past.extend(x.flatten(2), self._window - 1)
        heads = context.view(*context.shape[:2], self._heads, self._head_dim)
        return torch.as_tensor(heads.unfold(1, self._window - 1 + self._stride, self._stride))

    def _attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """[..., H, S, D] of the frames' positions and [..., H, D, W - 1 + S] of what they see ->
        [..., H, S, D]."""
        scores = query @ key
        weights = torch.softmax(scores * self._head_dim**-0.5 + mask, dim=-1)
        return weights @ value.mT


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
        rotation: InterleavedRotary,
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
        name: in front of `.transformer`.
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
        rotation = InterleavedRotary(start, x.shape[1], self._sizes)
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


FADES_IN = 200
"""The first 1 / 200 of a second grows from silence, as in the published program."""


class FrameSpread:
    """A transposed convolution of each channel by itself. [B, T, C] -> [B, T * S, C]."""

    def __init__(self, weights: Weights, name: str, size: int, stride: int) -> None:
        taps = weights.take(f"{name}.weight", size, 1, 2 * stride)[:, 0].t().contiguous()
        self._own, self._earlier = taps[:stride], taps[stride:]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        before = past.extend(x, 1)[:, :-1]
        spread = x[:, :, None] * self._own + before[:, :, None] * self._earlier
        return spread.flatten(1, 2)


class RaisingStage:
    """Raises the rate, halves the channels, then applies units."""

    def __init__(
        self, weights: Weights, first: int, size: int, ratio: int, sizes: SeanetSizes
    ) -> None:
        half = size // 2
        self._upsample = CausalUpsample(
            weights, f"decoder.model.{first}.convtr", size, half, ratio, 2 * ratio
        )
        self._units = load_seanet_units(weights, "decoder.model", first + 1, half, sizes)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(elu(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class MimiDecoder(CausalDecoder):
    """The published codec as a decoder of latents.

    A frame is a latent and what the talker puts behind it.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    recordable = True
    channels = 1

    def __init__(
        self, checkpoint: Path, device: torch.device, read: ReadWeights = read_part
    ) -> None:
        config = load_config(checkpoint)
        mimi, sizes = config.mimi, config.mimi.decoder
        self.sample_rate, self.samples_per_frame = mimi.sample_rate, mimi.samples_per_frame
        self.latent_size = mimi.latent + FRAME_COLUMNS
        self._latent = mimi.latent
        super().__init__(torch.zeros(1, 1, self.latent_size, device=device))
        statistics = read(config.weights, "flow_lm.emb_", device)
        self._mean = statistics.take("mean", mimi.latent)
        self._deviation = statistics.take("std", mimi.latent)
        weights = read(config.weights, MIMI, device)
        widen = weights.take("quantizer.output_proj.weight", sizes.size, mimi.latent, 1)
        self._widen = Linear(widen[:, :, 0])
        self._spread = FrameSpread(weights, "upsample.convtr.convtr", sizes.size, mimi.stride)
        self._transformer = WindowedTransformer(
            weights, "decoder_transformer", config.mimi.decoder_transformer, mimi.stride
        )
        width, number = sizes.filters << len(sizes.ratios), 0
        self._first = CausalConv(weights, "decoder.model.0.conv", sizes.size, width, sizes.kernel)
        self._stages: list[RaisingStage] = []
        for ratio in sizes.ratios:
            # An activation has a number too.
            self._stages.append(RaisingStage(weights, number + 2, width, ratio, sizes))
            width, number = width // 2, number + 2 + sizes.units
        self._last = CausalConv(
            weights, f"decoder.model.{number + 2}.conv", width, 1, sizes.last_kernel
        )
        samples = mimi.sample_rate // FADES_IN
        self._fade = torch.ones(mimi.samples_per_frame, 1, device=device)
        self._fade[:samples, 0] = torch.linspace(0, 1, samples, device=device)

    def _run(self, frames: torch.Tensor, past: ConvCache) -> torch.Tensor:
        latents = frames[..., : self._latent] * self._deviation + self._mean
        x = self._spread(self._widen(latents), past)
        x = self._first(self._transformer(x, past), past)
        for stage in self._stages:
            x = stage(x, past)
        samples = self._last(elu(x), past).clamp(-1.0, 1.0)
        begins = (past.positions == 0)[:, None, None]
        first = samples[:, : self.samples_per_frame]
        first *= torch.where(begins, self._fade, 1.0)
        return samples
