"""A few rows have the bits that they have among many, though their weights are read in bfloat16."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cantata.contract.model.row_products import RowProduct
from cantata_layers import few_row_products
from cantata_layers.few_row_products import (
    MAX_ROWS,
    RUN,
    FewOrManyRows,
    FewRows,
    can_pack,
    compile_kernel,
)
from fewer_instructions import SMALLER_SETS, run_again, with_fewer_instructions
from threads import threads

INPUTS = (96, 576, RUN, 1536, 2 * RUN + 64)
OUTPUTS = 192


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in the stage's process."""
    with threads(1):
        yield


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def bfloat16(outputs: int, inputs: int) -> torch.Tensor:
    return (draw(outputs, inputs) * 0.02).bfloat16().float()


@pytest.mark.parametrize("inputs", INPUTS)
def test_rows_are_those_of_a_product_of_many(inputs: int) -> None:
    weight, bias, rows = bfloat16(OUTPUTS, inputs), draw(OUTPUTS, seed=1), draw(64, inputs, seed=2)
    product, right = FewOrManyRows(weight), RowProduct(weight)
    if torch.backends.cpu.get_cpu_capability() == "AVX2":
        assert product.reads_halves
    for count in range(MAX_ROWS + 3):
        assert torch.equal(product(rows[:count]), right(rows)[:count])
        assert torch.equal(product(rows[:count], bias), right(rows, bias)[:count])


@pytest.mark.thorough(every=2)
@with_fewer_instructions
@pytest.mark.parametrize("smaller", SMALLER_SETS)
def test_so_it_is_with_fewer_instructions(smaller: str) -> None:
    run_again([Path(__file__)], "product_of_many or another_order", smaller)


@pytest.mark.parametrize("inputs", INPUTS)
def test_products_are_near_those_in_float64(inputs: int) -> None:
    weight, rows = bfloat16(OUTPUTS, inputs), draw(3, inputs, seed=2)
    kernel = compile_kernel()
    assert kernel is not None
    exact = rows.double() @ weight.double().T
    error = (FewRows(weight, kernel, RUN)(rows).double() - exact).abs().max()
    assert error < 4e-6 * exact.abs().max()


@pytest.mark.parametrize(("outputs", "inputs"), [(OUTPUTS + 8, 96), (OUTPUTS, 98)])
def test_weights_that_fill_no_tiles_are_multiplied_as_many(outputs: int, inputs: int) -> None:
    weight, rows = bfloat16(outputs, inputs), draw(64, inputs)
    product = FewOrManyRows(weight)
    assert not product.reads_halves
    assert torch.equal(product(rows[:1]), RowProduct(weight)(rows)[:1])


def test_no_weight_is_rounded() -> None:
    weight = bfloat16(OUTPUTS, 96)
    assert can_pack(weight)
    weight[-1, -1] += 2**-14
    assert not can_pack(weight)


@pytest.mark.parametrize("run", [64, RUN // 2, 2 * RUN])
def test_sums_in_another_order_are_not_used(monkeypatch: pytest.MonkeyPatch, run: int) -> None:
    """What would give a row other bits alone than in company is found before the first request."""
    monkeypatch.setattr(few_row_products, "RUN", run)
    weight, rows = bfloat16(OUTPUTS, 1536), draw(64, 1536, seed=2)
    product = FewOrManyRows(weight)
    assert torch.equal(product(rows[:1]), RowProduct(weight)(rows)[:1])
    if torch.backends.cpu.get_cpu_capability() == "AVX2":
        assert not product.reads_halves


def test_without_numba_all_rows_are_multiplied_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    compile_kernel.cache_clear()
    try:
        assert not FewOrManyRows(bfloat16(OUTPUTS, 96)).reads_halves
    finally:
        compile_kernel.cache_clear()


def test_engines_can_be_made_after_numba_was_imported() -> None:
    dispatcher = importlib.import_module("vllm.triton_utils.dispatcher")
    assert compile_kernel() is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules that say what is deprecated in them
        dispatcher._rebind_kernels([])  # what each engine begins with: it reads all modules
