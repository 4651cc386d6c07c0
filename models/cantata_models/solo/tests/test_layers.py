"""A row's result does not depend on the other rows, to the last bit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks import packed_product
from cantata_models.solo.networks.layers import TrainableRowLinear
from cantata_models.solo.networks.packed_product import PackedProduct, is_half
from cantata_models.solo.numerics import served_shapes
from fewer_instructions import SMALLER_SETS, run_again, with_fewer_instructions

FOLDER = Path(__file__).parent
COUNTS = (*range(1, 65), 119, 120, 121, 122, 127, 247, 601)
"""Row counts: every block split of FBGEMM up to 64 rows, and counts around its multiples of 120."""
UNIT = 2.0**-24
"""Half the distance from 1 to the next float32: the largest error of one addition."""


def make_layer(inner: int, outer: int, half: bool) -> TrainableRowLinear:
    torch.manual_seed(0)
    layer = TrainableRowLinear(inner, outer).requires_grad_(False)
    if half:
        layer.load_state_dict({k: v.half().float() for k, v in layer.state_dict().items()})
    assert is_half(layer.weight) == half
    return layer


@pytest.mark.parametrize("half", [True, False], ids=["half", "float"])
@pytest.mark.parametrize(("inner", "outer"), served_shapes(SoloConfig()))
def test_a_row_is_the_same_in_any_company(inner: int, outer: int, half: bool) -> None:
    layer = make_layer(inner, outer, half)
    company = torch.randn(max(COUNTS) + 7, inner)
    together = layer(company)
    differing = [n for n in COUNTS if not torch.equal(layer(company[7 : 7 + n]), together[7:][:n])]
    assert differing == []


@pytest.mark.parametrize("half", [True, False], ids=["half", "float"])
@pytest.mark.parametrize(("inner", "outer"), served_shapes(SoloConfig()))
def test_a_product_is_right(inner: int, outer: int, half: bool) -> None:
    layer, rows = make_layer(inner, outer, half), torch.randn(5, inner)
    weight = layer.weight.double()
    expected = rows.double() @ weight.t() + layer.bias.double()
    # The error of a sum of K terms grows like a random walk: sqrt(K) roundings of the partial sum,
    # which is about |row| |weight| / sqrt(K). Eight times that still fails weights wrongly rounded
    # to float16, whose error is 2^-12 of it.
    allowed = 8 * UNIT * (rows.norm(dim=1)[:, None] * weight.norm(dim=1) + layer.bias.abs())
    assert bool(((layer(rows) - expected).abs() <= allowed).all())


@pytest.mark.thorough(every=2)
@with_fewer_instructions
@pytest.mark.parametrize("smaller", SMALLER_SETS)
def test_so_it_is_with_fewer_instructions(smaller: str) -> None:
    names = ("test_layers.py", "test_codec_decoder.py", "test_text_track.py")
    selected = "any_company or product_is_right or batch or in_parts or padding"
    run_again([FOLDER / name for name in names], selected, smaller)


def test_the_padding_is_what_this_cpu_needs() -> None:
    missing = packed_product.missing_rows()
    if os.environ.get("FBGEMM_ENABLE_INSTRUCTIONS") == "AVX2":
        # Blocks of one and of two rows, as in FBGEMM's table for AVX2.
        assert missing is not None
        assert missing[:15] == (0, 2, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1)
    found = packed_product.describe(missing)
    assert ("oneDNN" in found) == (missing is None)
    assert ("rows more" in found) == any(missing or ())


def test_a_product_without_regular_rows_needs_another_library() -> None:
    row = torch.randn(4)

    def irregular(rows: torch.Tensor) -> torch.Tensor:
        return rows * (1 + torch.arange(len(rows))[:, None])

    def longer_period(rows: torch.Tensor) -> torch.Tensor:
        return rows * (1 + len(rows) // 241)

    assert packed_product.find_missing_rows(irregular, row) is None
    assert packed_product.find_missing_rows(longer_period, row) is None
    assert packed_product.find_missing_rows(torch.clone, row) == (0,) * packed_product.PERIOD


def test_a_product_keeps_the_weights_it_was_made_of() -> None:
    weight, rows = torch.randn(8, 4), torch.randn(3, 4)
    product = PackedProduct(weight)
    before = product(rows)
    assert product.is_for(weight)
    weight *= 2
    assert not product.is_for(weight)
    assert torch.equal(product(rows), before)


def test_changed_weights_are_used() -> None:
    layer, rows = TrainableRowLinear(8, 4).requires_grad_(False), torch.randn(3, 8)
    before = layer(rows)
    layer.load_state_dict({"weight": 2 * layer.weight, "bias": 2 * layer.bias})
    torch.testing.assert_close(layer(rows), 2 * before)


def test_training_goes_through_autograd() -> None:
    layer, rows = TrainableRowLinear(8, 4), torch.randn(3, 8)
    torch.autograd.backward(layer(rows).sum())
    assert layer.weight.grad is not None
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert layer(rows).dtype == torch.bfloat16
