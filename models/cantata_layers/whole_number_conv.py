"""A convolution whose weights are whole numbers of 8 bits, for CPUs with VNNI instructions.

A published 8-bit weight is a whole number times a step. Inputs are rounded to whole numbers of 16
bits, which have two digits. Each digit is multiplied in 8 bits and added in 32, without rounding,
at four times the speed of float32; both together take half its time. The error is that of the
inputs' rounding, 1 / 65,000 of the largest.

A dilated convolution becomes as many plain ones, of every D-th moment each: oneDNN's dilated ones
take half as long again.

Letters: I inputs, O outputs, T time, D the dilation.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

_MAX_WEIGHT = 127
_DIGIT, _MIDDLE = 256, 128
"""Values of a digit, and the one that stands for 0."""
_MAX_INPUT = _DIGIT * 127 + 127
_STRETCH = 512
"""Moments whose digits are made at once: they fit into a core's cache."""


def find_step(weight: torch.Tensor) -> float | None:
    """What all weights are whole numbers of, from -127 to 127; None: there is no such step.

    Args:
        weight: float32 of any shape. If it has a step, one weight is no more than that: an export
            without such a weight is not recognized.
    """
    sizes = weight.abs()
    sizes = sizes[sizes > 0]
    if not sizes.numel():
        return None
    step = sizes.min()
    numbers = (weight / step).round()
    fits = torch.equal(numbers * step, weight) and float(numbers.abs().max()) <= _MAX_WEIGHT
    return float(step) if fits else None


class WholeNumberConv(nn.Module):
    """[1, I, T] float32 -> [1, O, T] float32.

    Args:
        conv: the convolution to replace, on a CPU with VNNI instructions: without groups or
            strides, and padded so that the output is as long as the input.
        step: of its weights.
    """

    def __init__(self, conv: nn.Conv1d, step: float) -> None:
        super().__init__()
        assert (conv.groups, conv.stride) == (1, (1,))
        outputs, (self._dilation,) = conv.out_channels, conv.dilation
        self._steps = torch.full((outputs,), step)
        self._zeros = torch.zeros(outputs, dtype=torch.int32)
        self._bias = None if conv.bias is None else conv.bias.detach()
        self._places = ([1], [conv.kernel_size[0] // 2], [1], 1)
        numbers = (conv.weight.detach() / step).round().to(torch.int8)
        self._packed = torch.ops.onednn.qconv_prepack(
            numbers, self._steps, 1.0, _MIDDLE, *self._places, None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[1, I, T] -> [1, O, T]."""
        lowest, highest = torch.aminmax(x)
        step = max(-float(lowest), float(highest), torch.finfo(x.dtype).tiny) / _MAX_INPUT
        high, low = (self._spread(digits) for digits in _split(x, step))
        large = self._convolve(high, _DIGIT * step, None)
        small = self._convolve(low, step, self._bias)
        made = x.new_empty(large.shape[1], large.shape[2], self._dilation)
        # oneDNN's results have the channels innermost.
        for target, first, second in _stretch(1, made, large.movedim(0, 2), small.movedim(0, 2)):
            target.copy_(first.add_(second))
        return made.flatten(1)[None, :, : x.shape[2]]

    def _spread(self, digits: torch.Tensor) -> torch.Tensor:
        """[1, I, T] -> [D, I, T / D, rounded up]."""
        whole = functional.pad(digits, (0, -digits.shape[2] % self._dilation), value=_MIDDLE)
        phases = whole[0].view(whole.shape[1], -1, self._dilation).movedim(2, 0)
        return phases.contiguous()

    def _convolve(
        self, digits: torch.Tensor, step: float, bias: torch.Tensor | None
    ) -> torch.Tensor:
        made: torch.Tensor = torch.ops.onednn.qconv1d_pointwise(
            digits,
            step,
            _MIDDLE,
            self._packed,
            self._steps,
            self._zeros,
            bias,
            *self._places,
            1.0,
            0,
            torch.float32,
            "none",
            [],
            "",
        )
        return made


def _split(x: torch.Tensor, step: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The two digits of each number's whole steps, uint8 each; `_MIDDLE` is 0."""
    high = torch.empty(x.shape, dtype=torch.uint8)
    low = torch.empty_like(high)
    for part, larger, smaller in _stretch(2, x, high, low):
        # Half a digit more, so that the lower one goes from -128 to 127.
        whole = (part * (1 / step)).round_().add_(_MIDDLE).to(torch.int16)
        smaller.copy_(whole.bitwise_and(_DIGIT - 1))
        larger.copy_(whole.bitwise_right_shift_(8).add_(_MIDDLE))
    return high, low


def _stretch(dim: int, *tensors: torch.Tensor) -> zip[tuple[torch.Tensor, ...]]:
    """Parts of tensors that go together."""
    return zip(*(torch.split(one, _STRETCH, dim) for one in tensors), strict=True)
