"""A row's result does not depend on the rows beside it, to the last bit."""

from __future__ import annotations

import pytest
import torch

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.layers import RowLinear, row_product

CODEC = SoloConfig().codec
SHAPES = [
    (CODEC.latent_size, CODEC.frame_channels),
    (CODEC.frame_channels, 3 * CODEC.frame_channels),
    (3 * CODEC.frame_channels, CODEC.frame_channels),
    (CODEC.frame_channels, 8 * CODEC.decoder_channels),
    (CODEC.decoder_channels, 2 * CODEC.decoder_channels),
    (2 * CODEC.decoder_channels, CODEC.decoder_channels),
    (CODEC.decoder_channels, 992),
]
"""Of the decoder as it ships: kernels differ by shape."""


@pytest.mark.parametrize("rows", [1, 2, 3, 8, 17, 64, 100])
@pytest.mark.parametrize(("inner", "outer"), SHAPES)
def test_a_row_is_the_same_in_any_company(inner: int, outer: int, rows: int) -> None:
    torch.manual_seed(0)
    layer = RowLinear(inner, outer).requires_grad_(False)
    company = torch.randn(120, inner)
    together = layer(company)
    assert torch.equal(layer(company[7 : 7 + rows]), together[7 : 7 + rows])
    expected = torch.nn.functional.linear(company, layer.weight, layer.bias)
    torch.testing.assert_close(together, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 7, 16, 33])
def test_a_product_without_a_layer_is_too(rows: int) -> None:
    torch.manual_seed(0)
    entries = torch.randn(CODEC.codebook_size, CODEC.latent_size)
    company = torch.randn(48, CODEC.latent_size)
    together = row_product(company, entries)
    assert torch.equal(row_product(company[:rows], entries), together[:rows])


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
