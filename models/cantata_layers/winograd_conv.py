"""A convolution over time with half the multiplications: Winograd's F(4, 4), after Lavin and Gray,
"Fast Algorithms for Convolutional Neural Networks", 2015.

Four outputs of a kernel of four taps are a product of polynomials, which is known from its values
at seven points: 7 multiplications in place of 16. A wider kernel is several of four taps, which
share the inputs' values and add up before the way back. In float32, the error is about four times
that of the plain sum: 1e-5 of the output's standard deviation.

A dilated convolution is as many plain ones, of every D-th moment each.

Letters: I inputs, O outputs, T time, D the dilation, B blocks of four taps, J groups of four
moments.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

_TAPS = _OUTPUTS = 4
_POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)
"""And infinity, where a polynomial's value is its highest coefficient."""
_VALUES = len(_POINTS) + 1
_STRETCH = 512
"""Groups that are computed at once: the fastest of 64 to 512 on a CPU with AVX2."""


def _make_evaluation_matrix(coefficients: int) -> torch.Tensor:
    """[_VALUES, coefficients] float64: from a polynomial's coefficients to its values."""
    points = torch.tensor(_POINTS, dtype=torch.float64)
    highest = torch.zeros(1, coefficients, dtype=torch.float64)
    highest[0, -1] = 1
    return torch.cat([torch.vander(points, coefficients, increasing=True), highest])


_TO_KERNEL = _make_evaluation_matrix(_TAPS)
_TO_OUTPUTS = _make_evaluation_matrix(_OUTPUTS).T.float().contiguous()
_TO_INPUTS = torch.linalg.inv(_make_evaluation_matrix(_VALUES)).T.float()
# Of the seven moments that four outputs need, three are the next group's.
_FROM_GROUP = _TO_INPUTS[:, :_OUTPUTS].contiguous()
_FROM_NEXT = _TO_INPUTS[:, _OUTPUTS:].contiguous()


class WinogradConv(nn.Module):
    """[1, I, T] float32 -> [1, O, T] float32.

    Args:
        conv: the convolution to replace, in float32 on a CPU: without groups or strides, and padded
            so that the output is as long as the input.
    """

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        assert (conv.groups, conv.stride) == (1, (1,))
        self._outputs, inputs, kernel = conv.weight.shape
        (self._dilation,) = conv.dilation
        self._before = kernel // 2 * self._dilation
        self._blocks = -(-kernel // _TAPS)
        missing = self._blocks * _TAPS - kernel
        taps = functional.pad(conv.weight.detach().double(), (0, missing))
        values = taps.view(self._outputs, inputs, self._blocks, _TAPS) @ _TO_KERNEL.T
        self._kernels = values.permute(2, 3, 0, 1).float().contiguous()  # [B, _VALUES, O, I]
        bias = torch.zeros(self._outputs) if conv.bias is None else conv.bias.detach()
        self._bias = bias[None, :, None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[1, I, T] -> [1, O, T]."""
        length, width = x.shape[2], _OUTPUTS * self._dilation
        groups = -(-length // width)
        padded = self._pad(x[0], (groups + self._blocks) * width)
        moments = padded.view(x.shape[1], -1, _OUTPUTS, self._dilation)
        made = x.new_empty(self._outputs, groups, _OUTPUTS, self._dilation)
        for phase in range(self._dilation):
            for first in range(0, groups, _STRETCH):
                target = made[:, first : first + _STRETCH, :, phase]
                given = moments[:, first : first + target.shape[1] + self._blocks, :, phase]
                torch.add(self._convolve(given), self._bias, out=target.permute(2, 0, 1))
        return made.flatten(1)[None, :, :length]

    def _pad(self, x: torch.Tensor, length: int) -> torch.Tensor:
        """[I, T] between zeros, [I, length]; `functional.pad` would write twice."""
        end = self._before + x.shape[1]
        padded = x.new_empty(x.shape[0], length)
        padded[:, : self._before].zero_()
        padded[:, self._before : end].copy_(x)
        padded[:, end:].zero_()
        return padded

    def _convolve(self, moments: torch.Tensor) -> torch.Tensor:
        """[I, J + B, 4] -> [4, O, J]."""
        inputs, groups, _ = moments.shape
        own = moments.permute(2, 0, 1).reshape(_OUTPUTS, -1)  # [4, I * (J + B)]
        values = torch.mm(_FROM_GROUP, own)
        # One place on is the next group; the last of each input, which has none, is not used.
        values[:, :-1].addmm_(_FROM_NEXT, own[: _VALUES - _OUTPUTS, 1:])
        values = values.view(_VALUES, inputs, groups)
        count = groups - self._blocks
        made = torch.bmm(self._kernels[0], values[..., :count])
        for block in range(1, self._blocks):
            made.baddbmm_(self._kernels[block], values[..., block : block + count])
        return torch.mm(_TO_OUTPUTS, made.flatten(1)).view(_OUTPUTS, self._outputs, count)
