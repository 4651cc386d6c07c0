"""A row's result does not depend on the rows beside it, to the last bit."""

from __future__ import annotations

import pytest
import torch

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.layers import RowLinear
from cantata_models.solo.networks.packed_product import PackedProduct, is_half

CODEC = SoloConfig().codec
SHAPES = [
    (CODEC.latent_size, CODEC.frame_channels),
    (CODEC.frame_channels, 3 * CODEC.frame_channels),
    (3 * CODEC.frame_channels, CODEC.frame_channels),
    (CODEC.frame_channels, 8 * CODEC.decoder_channels),
    (CODEC.decoder_channels, 2 * CODEC.decoder_channels),
    (2 * CODEC.decoder_channels, CODEC.decoder_channels),
    (CODEC.decoder_channels, 992),
    (CODEC.latent_size, CODEC.codebook_size),
]
"""Of the codec as it ships: kernels differ by shape."""


@pytest.mark.parametrize("half", [True, False], ids=["half", "float"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 17, 64, 100])
@pytest.mark.parametrize(("inner", "outer"), SHAPES)
def test_a_row_is_the_same_in_any_company(inner: int, outer: int, rows: int, half: bool) -> None:
    torch.manual_seed(0)
    layer = RowLinear(inner, outer).requires_grad_(False)
    if half:
        layer.load_state_dict({k: v.half().float() for k, v in layer.state_dict().items()})
    assert is_half(layer.weight) == half
    company = torch.randn(120, inner)
    together = layer(company)
    assert torch.equal(layer(company[7 : 7 + rows]), together[7 : 7 + rows])
    expected = torch.nn.functional.linear(company, layer.weight, layer.bias)
    # Wide enough for sums in another order, too narrow for weights that were rounded.
    torch.testing.assert_close(together, expected, rtol=1e-5, atol=1e-5)


def test_a_product_keeps_the_weights_it_was_made_of() -> None:
    weight, rows = torch.randn(8, 4), torch.randn(3, 4)
    product = PackedProduct(weight)
    before = product(rows)
    assert product.is_of(weight)
    weight *= 2
    assert not product.is_of(weight)
    assert torch.equal(product(rows), before)


def test_changed_weights_are_used() -> None:
    layer, rows = RowLinear(8, 4).requires_grad_(False), torch.randn(3, 8)
    before = layer(rows)
    layer.load_state_dict({"weight": 2 * layer.weight, "bias": 2 * layer.bias})
    torch.testing.assert_close(layer(rows), 2 * before)


def test_training_goes_through_autograd() -> None:
    layer, rows = RowLinear(8, 4), torch.randn(3, 8)
    torch.autograd.backward(layer(rows).sum())
    assert layer.weight.grad is not None
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(rows).dtype == torch.bfloat16
