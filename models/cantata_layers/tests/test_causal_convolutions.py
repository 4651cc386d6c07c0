"""A causal convolution in blocks, and whole where a block is only a launch more."""

from __future__ import annotations

import pytest
import torch

from cantata_layers import causal_convolutions
from cantata_layers.causal_convolutions import CausalConv, ConvCache
from cantata_layers.weights import Weights
from pretended_device import device, in_copied_process, pretended

INPUTS, OUTPUTS, KERNEL, LENGTH = 4, 6, 3, 10


def _convolved(where: torch.device, monkeypatch: pytest.MonkeyPatch) -> tuple[torch.Tensor, int]:
    """[2, L, O], and how many products made it."""
    made = torch.Generator().manual_seed(0)
    weight = torch.randn(OUTPUTS, INPUTS, KERNEL, generator=made)
    tensors = [("conv.weight", weight), ("conv.bias", torch.randn(OUTPUTS, generator=made))]
    weights = Weights.of(tensors, "here", where)
    convolve = CausalConv(weights, "conv", INPUTS, OUTPUTS, KERNEL)
    products: list[int] = []
    multiply = convolve._product

    def counted(x: torch.Tensor) -> torch.Tensor:
        products.append(x.shape[1])
        return multiply(x)

    monkeypatch.setattr(convolve, "_product", counted)
    monkeypatch.setattr(counted, "inputs", multiply.inputs, raising=False)
    x = torch.randn(2, LENGTH, INPUTS, generator=made).to(where)
    past = ConvCache(torch.zeros(2, dtype=torch.int64, device=where), None)
    output = convolve(x, past).to("cpu")
    assert sum(products) == LENGTH
    return output, len(products)


@in_copied_process
@torch.no_grad()
def test_blocks_are_for_the_cpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, one = _convolved(torch.device("cpu"), monkeypatch)
    monkeypatch.setattr(causal_convolutions, "BLOCK_VALUES", 2 * 3 * INPUTS * KERNEL)
    parts, several = _convolved(torch.device("cpu"), monkeypatch)
    assert (one, several) == (1, 4)
    assert torch.equal(parts, whole)
    with pretended():
        there, launches = _convolved(device(), monkeypatch)
    assert launches == 1
    torch.testing.assert_close(there, whole)
