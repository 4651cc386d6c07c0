"""Convolutions with fewer multiplications beside torch's own in float64."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cantata_layers.winograd_conv import WinogradConv

INPUTS, OUTPUTS = 24, 40


def make_conv(kernel: int, dilation: int, bias: bool = True) -> nn.Conv1d:
    torch.manual_seed(kernel + dilation)
    padding = dilation * (kernel - 1) // 2
    conv = nn.Conv1d(INPUTS, OUTPUTS, kernel, dilation=dilation, padding=padding, bias=bias)
    return conv.requires_grad_(False)


@pytest.mark.parametrize("length", [1, 100, 2051, 6300])
@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (7, 1), (7, 3), (11, 1), (11, 5)])
def test_it_is_the_convolution(kernel: int, dilation: int, length: int) -> None:
    conv = make_conv(kernel, dilation)
    x = torch.randn(1, INPUTS, length)
    made = WinogradConv(conv)(x)
    exact = conv.double()(x.double())
    assert made.shape == exact.shape
    assert (made - exact).abs().max() < 5e-5 * exact.std(correction=0)


def test_a_convolution_needs_no_bias() -> None:
    conv = make_conv(7, 1, bias=False)
    x = torch.randn(1, INPUTS, 60)
    torch.testing.assert_close(WinogradConv(conv)(x), conv(x), rtol=0, atol=1e-4)


def test_samples_repeat_wherever_the_input_lies_in_memory() -> None:
    conv = WinogradConv(make_conv(11, 3))
    x = torch.randn(1, INPUTS, 3000)
    wanted = conv(x)
    for offset in (1, 3, 16):
        moved = torch.zeros(x.numel() + offset)[offset:].view(x.shape).copy_(x)
        assert torch.equal(conv(moved), wanted)


def test_silence_is_the_bias() -> None:
    conv = make_conv(7, 3)
    assert conv.bias is not None
    made = WinogradConv(conv)(torch.zeros(1, INPUTS, 50))
    torch.testing.assert_close(made, conv.bias[None, :, None].expand(1, -1, 50))
