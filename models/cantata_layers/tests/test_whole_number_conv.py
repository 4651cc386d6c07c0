"""Convolutions of whole numbers beside torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cantata_layers.whole_number_conv import WholeNumberConv, find_step

INPUTS, OUTPUTS, STEP = 24, 40, 0.003
LARGEST = 127 * 256 + 127
"""Of 16 bits; inputs are rounded to a whole number of its parts."""

needs_vnni = pytest.mark.skipif(
    not torch.cpu._is_vnni_supported(), reason="this processor has no VNNI instructions"
)


def make_conv(kernel: int, dilation: int, step: float = STEP, bias: bool = True) -> nn.Conv1d:
    """With weights from -127 to 127 steps."""
    torch.manual_seed(kernel + dilation)
    padding = dilation * (kernel - 1) // 2
    conv = nn.Conv1d(INPUTS, OUTPUTS, kernel, dilation=dilation, padding=padding, bias=bias)
    numbers = torch.randint(-127, 128, conv.weight.shape).float()
    conv.weight = nn.Parameter(numbers * torch.tensor(step))
    return conv.requires_grad_(False)


def replace(conv: nn.Conv1d) -> WholeNumberConv:
    step = find_step(conv.weight)
    assert step is not None
    return WholeNumberConv(conv, step)


@needs_vnni
@pytest.mark.parametrize("length", [1, 100, 1301])
@pytest.mark.parametrize(("kernel", "dilation"), [(1, 1), (3, 1), (7, 3), (11, 5)])
def test_it_is_the_convolution_of_the_inputs_in_16_bits(
    kernel: int, dilation: int, length: int
) -> None:
    conv = make_conv(kernel, dilation)
    x = torch.randn(1, INPUTS, length)
    part = x.abs().max().double() / LARGEST
    exact = conv.double()((x.double() / part).round() * part)
    made = replace(make_conv(kernel, dilation))(x)
    # An input in the middle between two may go to either, by float32's rounding.
    either = 3 * float(part) * 127 * STEP
    torch.testing.assert_close(made.double(), exact, rtol=1e-6, atol=either)


@needs_vnni
@pytest.mark.parametrize("dilation", [1, 3])
def test_whole_numbers_are_multiplied_without_rounding(dilation: int) -> None:
    """Every value of both digits, and the largest number of each sign."""
    conv = make_conv(3, dilation, step=1.0, bias=False)
    x = torch.randint(-LARGEST, LARGEST + 1, (1, INPUTS, 900)).float()
    x[0, 0, :2] = torch.tensor([LARGEST, -LARGEST])
    made = replace(conv)(x)
    torch.testing.assert_close(made.double(), conv.double()(x.double()), rtol=3e-7, atol=8.0)


@needs_vnni
def test_silence_is_the_bias() -> None:
    conv = make_conv(7, 3)
    made = replace(conv)(torch.zeros(1, INPUTS, 50))
    assert conv.bias is not None
    torch.testing.assert_close(made, conv.bias[None, :, None].expand(1, -1, 50))


def test_a_step_is_found_only_where_all_weights_are_its_multiples() -> None:
    weight = make_conv(7, 1).weight.detach()
    assert find_step(weight) == pytest.approx(STEP)
    assert find_step(-weight) == pytest.approx(STEP)
    off = weight.clone()
    off[3, 2, 1] += STEP / 1000
    assert find_step(off) is None
    beyond = weight.clone()
    beyond[0, 0, 0] = 128 * torch.tensor(find_step(weight))
    assert find_step(beyond) is None
    assert find_step(torch.randn(8, 8, 3)) is None
    assert find_step(torch.zeros(8, 8, 3)) is None
