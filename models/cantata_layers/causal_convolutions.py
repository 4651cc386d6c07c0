"""Causal building blocks over [B, L, C] whose results do not depend on how L is chunked.

Every convolution is one matrix product per position over that position's concatenated inputs. A
product with weights packed once by oneDNN gives a row the same bits whatever the other rows are
(`contract.model.row_products`); oneDNN's convolutions do not. Devices other than the CPU use the
plain product.

What a layer looks back at is in a `ConvCache` during a call, and in a `CodecState` between calls.

Letters: S slots, B rows, L positions, H positions of history, C channels, I inputs, O outputs,
K the kernel, R the rate.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch.nn import functional

from cantata_layers.exact_layers import Linear
from cantata_layers.weights import Weights


@dataclass(slots=True)
class ConvCache:
    """The histories of some rows during one call.

    Each layer that looks back gets its history from `extend`. The order in which the layers run
    ties each history to its layer.
    """

    positions: torch.Tensor
    """[B] int64: number of frames before this call."""
    histories: list[torch.Tensor] | None
    """[B, H, C] per layer. None at the start of a stream, where zeros are used."""
    extended: list[torch.Tensor] = field(default_factory=list)
    """The histories after this call."""

    def extend(self, x: torch.Tensor, length: int) -> torch.Tensor:
        """Prepend the last `length` positions to x and store the new last ones.

        Args:
            x: [B, L, C].

        Returns:
            [B, length + L, C].
        """
        if self.histories is None:
            history = x.new_zeros(x.shape[0], length, x.shape[2])
        else:
            history = self.histories[len(self.extended)]
        context = torch.cat([history, x], dim=1)
        self.extended.append(context[:, context.shape[1] - length :])
        return context


@dataclass(frozen=True, slots=True)
class CodecState:
    """The decoder's state for each slot, created by `init_state` and updated by `decode`."""

    positions: torch.Tensor
    """[S] int64: number of frames decoded."""
    histories: tuple[torch.Tensor, ...]
    """[S, H, C] float32 for each layer that looks back."""

    def reset(self, slots: torch.Tensor) -> None:
        """Reset these slots ([B] int64) in place."""
        self.positions[slots] = 0
        for history in self.histories:
            history[slots] = 0.0

    def take(self, slots: torch.Tensor | slice) -> ConvCache:
        """These slots' rows; those of a slice are the state's own, to be read before `put`."""
        return ConvCache(self.positions[slots], [history[slots] for history in self.histories])

    def put(self, slots: torch.Tensor | slice, past: ConvCache, frames: int) -> None:
        """Write rows back after `frames` more frames, in place."""
        self.positions[slots] = past.positions + frames
        for mine, theirs in zip(self.histories, past.extended, strict=True):
            mine[slots] = theirs


def find_run(slots: torch.Tensor) -> torch.Tensor | slice:
    """The same slots as a slice, which copies nothing, if they are on a CPU and follow each other;
    where another device has them, they cannot be read without waiting for it."""
    if slots.device.type != "cpu":
        return slots
    numbers = slots.tolist()
    first, last = numbers[0], numbers[0] + len(numbers)
    return slice(first, last) if numbers == list(range(first, last)) else slots


BLOCK_VALUES = 1 << 20
"""Inputs concatenated at a time on a CPU: 4 MB stay in the cache and in reused memory."""
WHOLE_VALUES = 1 << 28
"""The same on other devices, where each block is a launch more: 1 GB, so that memory is bounded."""
LAYER_NORM_EPS = 1e-6
SNAKE_EPS = 1e-9
DILATIONS = (1, 3, 9)
"""Of the residual units behind an upsampling."""


class CausalConv:
    """A convolution whose last tap is the position itself. [B, L, I] -> [B, L, O]."""

    def __init__(
        self,
        weights: Weights,
        name: str,
        inputs: int,
        outputs: int,
        kernel: int,
        dilation: int = 1,
    ) -> None:
        self._kernel, self._dilation = kernel, dilation
        weight = weights.take(f"{name}.weight", outputs, inputs, kernel)
        bias = weights.take(f"{name}.bias", outputs)
        self._product = Linear(weight.transpose(1, 2).reshape(outputs, kernel * inputs), bias)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        if self._kernel == 1:
            return self._product(x)
        length = x.shape[1]
        context = past.extend(x, (self._kernel - 1) * self._dilation)
        values = BLOCK_VALUES if x.device.type == "cpu" else WHOLE_VALUES
        block = max(1, values // (self._product.inputs * x.shape[0]))
        parts = [
            self._product(self._taps(context, start, min(start + block, length)))
            for start in range(0, length, block)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _taps(self, context: torch.Tensor, start: int, end: int) -> torch.Tensor:
        """Concatenate the inputs of positions start..end: [B, end - start, K * I]."""
        offsets = range(0, self._kernel * self._dilation, self._dilation)
        return torch.cat([context[:, start + o : end + o] for o in offsets], dim=-1)


class CausalUpsample:
    """A transposed convolution, trimmed to be causal. [B, L, I] -> [B, L * R, O].

    A kernel of R writes each position's R outputs. A kernel of 2R also adds the previous position's
    overflow to them.
    """

    def __init__(
        self, weights: Weights, name: str, inputs: int, outputs: int, rate: int, kernel: int
    ) -> None:
        assert kernel in (rate, 2 * rate)
        self._rate, self._outputs, self._reaches_on = rate, outputs, kernel > rate
        weight = weights.take(f"{name}.weight", inputs, outputs, kernel)
        bias = weights.take(f"{name}.bias", outputs)
        own = weight[..., :rate].permute(2, 1, 0).reshape(rate * outputs, inputs)
        if self._reaches_on:
            earlier = weight[..., rate:].permute(2, 1, 0).reshape(rate * outputs, inputs)
            own = torch.cat([earlier, own], dim=1)
        self._product = Linear(own, bias.repeat(rate))

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        batch, length, _ = x.shape
        if self._reaches_on:
            x = torch.cat([past.extend(x, 1)[:, :-1], x], dim=-1)
        return self._product(x).view(batch, length * self._rate, self._outputs)


class SnakeBeta:
    """x + sin^2(a x) / b with a frequency and magnitude per channel (Ziyin et al., 2020)."""

    def __init__(self, weights: Weights, name: str, size: int) -> None:
        self._frequency = weights.take(f"{name}.alpha", size).exp()
        self._inverse = 1.0 / (weights.take(f"{name}.beta", size).exp() + SNAKE_EPS)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _snake(x, self._frequency, self._inverse)


class ResidualUnit:
    """Snake, dilated convolution, snake, pointwise convolution and a residual connection."""

    def __init__(self, weights: Weights, name: str, size: int, dilation: int) -> None:
        self._first_snake = SnakeBeta(weights, f"{name}.act1", size)
        self._dilated = CausalConv(weights, f"{name}.conv1.conv", size, size, 7, dilation)
        self._second_snake = SnakeBeta(weights, f"{name}.act2", size)
        self._pointwise = CausalConv(weights, f"{name}.conv2.conv", size, size, 1)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        update = self._dilated(self._first_snake(x), past)
        return x + self._pointwise(self._second_snake(update), past)


class CausalConvNextBlock:
    """Depthwise convolution, LayerNorm, a two-layer perceptron and a residual connection."""

    KERNEL = 7

    def __init__(self, weights: Weights, name: str, size: int) -> None:
        self._size = size
        taps = weights.take(f"{name}.dwconv.conv.weight", size, 1, self.KERNEL)
        self._taps = taps[:, 0].t().contiguous()
        self._bias = weights.take(f"{name}.dwconv.conv.bias", size)
        self._norm = (
            weights.take(f"{name}.norm.weight", size),
            weights.take(f"{name}.norm.bias", size),
        )
        self._up = Linear.load(weights, f"{name}.pwconv1", size, 4 * size, bias=True)
        self._down = Linear.load(weights, f"{name}.pwconv2", 4 * size, size, bias=True)
        self._gain = weights.take(f"{name}.gamma", size)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        length = x.shape[1]
        context = past.extend(x, self.KERNEL - 1)
        # Sum the taps one by one, in a fixed order.
        mixed = self._bias.expand_as(x)
        for tap in range(self.KERNEL):
            mixed = mixed + context[:, tap : tap + length] * self._taps[tap]
        mixed = functional.layer_norm(mixed, (self._size,), *self._norm, eps=LAYER_NORM_EPS)
        return x + self._gain * self._down(functional.gelu(self._up(mixed)))


class Snake:
    """x + sin^2(a x) / a with a frequency per channel (Ziyin et al., 2020), in place.

    As the Descript Audio Codec has it (Kumar et al., 2023).
    """

    def __init__(self, weights: Weights, name: str, size: int) -> None:
        self._frequency = weights.take(f"{name}.alpha", 1, size, 1).flatten()
        self._inverse = 1.0 / (self._frequency + SNAKE_EPS)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return _snake(x, self._frequency, self._inverse)


class CausalDownsample:
    """A convolution with a stride. [B, L * R, I] -> [B, L, O].

    A kernel of R takes each R positions, one of 2R also the R before them.
    """

    def __init__(
        self, weights: Weights, name: str, inputs: int, outputs: int, rate: int, kernel: int
    ) -> None:
        assert kernel in (rate, 2 * rate)
        self._rate, self._reaches_back = rate, kernel > rate
        weight = weights.take(f"{name}.weight", outputs, inputs, kernel)
        rows = weight.transpose(1, 2).reshape(outputs, kernel * inputs)
        self._product = Linear(rows, weights.take(f"{name}.bias", outputs))

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = x.reshape(x.shape[0], x.shape[1] // self._rate, -1)
        if self._reaches_back:
            x = torch.cat([past.extend(x, 1)[:, :-1], x], dim=-1)
        return self._product(x)


def _snake(x: torch.Tensor, frequency: torch.Tensor, inverse: torch.Tensor) -> torch.Tensor:
    wave = (x * frequency).sin_()
    return wave.mul_(wave).mul_(inverse).add_(x)
