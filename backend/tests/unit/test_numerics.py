"""How products that depend on the number of rows are detected, and the doctor's report on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from cantata.cli import doctor
from cantata.config.plugins import load_plugins
from cantata.contract.model.numerics import NumericsReport, find_differing_counts
from cantata.contract.model.row_products import RowLinear, is_packed
from fewer_instructions import run_again, with_fewer_instructions


def test_row_counts_with_different_sums_are_reported() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, row = (torch.randn(*size, generator=generator) for size in ((64, 8), (64,)))

    def last_of_seven_in_another_order(rows: torch.Tensor) -> torch.Tensor:
        terms = (rows[:, :, None] * weight).unbind(1)
        products = sum(terms, torch.zeros(()))
        if len(rows) == 7:
            products[-1] = sum(terms[::-1], torch.zeros(()))[-1]
        return products

    assert find_differing_counts(last_of_seven_in_another_order, row, range(1, 12), among=9) == [7]


def test_the_doctor_says_which_kernels_are_used_and_which_differ() -> None:
    plugin = next(iter(load_plugins().values()))
    report = NumericsReport(exact=True, found="by oneDNN")
    exact = doctor.check_model_numerics(replace(plugin, check_numerics=lambda: report))
    assert (exact.verdict, exact.found) == (doctor.Verdict.OK, "by oneDNN")
    differing = NumericsReport(exact=False, found="64 x 64 with 7 rows")
    inexact = doctor.check_model_numerics(replace(plugin, check_numerics=lambda: differing))
    assert inexact.verdict is doctor.Verdict.WARNING
    assert inexact.found == "64 x 64 with 7 rows"
    assert "CPU" in inexact.advice


@pytest.mark.thorough  # the doctor's test says the same
@pytest.mark.parametrize("name", load_plugins())
def test_products_of_every_model_are_exact_per_row(name: str) -> None:
    check = load_plugins()[name].check_numerics
    if check is None:
        pytest.skip("says nothing of its products")
    assert check().exact, check().found


@pytest.mark.parametrize(("inputs", "outputs"), [(64, 128), (1100, 64), (1024, 3072)])
def test_row_products_of_every_model_s_sizes(inputs: int, outputs: int) -> None:
    torch.manual_seed(0)
    layer = RowLinear(inputs, outputs).requires_grad_(False)
    company = torch.randn(150, inputs)
    together = layer(company)
    for count in (*range(1, 34), 64, 96, 127, 143):
        assert torch.equal(layer(company[7 : 7 + count]), together[7 : 7 + count]), count
    torch.testing.assert_close(together, functional.linear(company, layer.weight, layer.bias))


def test_a_row_product_follows_its_weight() -> None:
    layer, rows = RowLinear(8, 4).requires_grad_(False), torch.randn(2, 3, 8)
    before = layer(rows)
    layer.load_state_dict({"weight": 2 * layer.weight, "bias": 2 * layer.bias})
    torch.testing.assert_close(layer(rows), 2 * before)
    layer.requires_grad_(True)
    torch.autograd.backward(layer(rows).sum())
    assert layer.weight.grad is not None
    assert layer.bfloat16()(rows.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("rows", [1, 3, 22])
def test_bfloat16_row_products_are_torch_s(rows: int) -> None:
    """Packed where this CPU can; bfloat16 keeps eight bits of a number."""
    torch.manual_seed(0)
    layer = RowLinear(1024, 96).requires_grad_(False).bfloat16()
    given = torch.randn(rows, 1024).bfloat16()
    made = layer(given)
    exact = functional.linear(given.double(), layer.weight.double(), layer.bias.double())
    torch.testing.assert_close(made.double(), exact, rtol=2**-7, atol=2**-8)
    assert made.dtype == torch.bfloat16
    layer.weight.mul_(2)
    layer.bias.mul_(2)
    assert torch.equal(layer(given), 2 * made), "it follows its weight"


def test_a_weight_of_another_dtype_or_device_is_not_packed() -> None:
    weight = torch.zeros(2, 2)
    assert is_packed(weight)
    assert not is_packed(weight.half())
    assert not is_packed(weight.to("meta"))


@pytest.mark.thorough
@with_fewer_instructions
def test_so_they_are_with_avx2() -> None:
    run_again([Path(__file__)], "every_model", "avx2")
