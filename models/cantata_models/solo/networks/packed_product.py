"""Matrix products whose float32 result for a row, on a CPU, does not depend on the other rows.

Matrix libraries choose the kernel, and so the order of summation, by the number of rows.

- FBGEMM with weights packed as float16 always gives a row the same bits if the number of rows suits
  this CPU's kernels. `missing_rows` tells which numbers do; others are padded with zeros.
  For a few rows the cost is reading the weights, which are half as large. With AVX-512 one row
  takes a seventh to a third of oneDNN's time, eight rows a third to two thirds, 64 or more the
  same. Weights that are exact in float16, as all weights of a checkpoint are, lose nothing.
- oneDNN does this for any number of rows (`contract.model.row_products`). It handles all other
  weights, and all weights where FBGEMM cannot be used.

FBGEMM processes rows in groups of 120 and splits the rest into blocks, with one kernel per block
height. Most kernels add a row's products in order. The AVX2 kernels for one and two rows keep
several sums and add them at the end, so a row in such a block gets different bits. The AVX-512
kernels have no such exception, unless FBGEMM is set to use 256-bit registers. FBGEMM does not
report its choice of kernels, so the first use in a process measures it, which takes 4 to 10 ms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache

import torch
from torch.nn import functional

from cantata.contract.model.numerics import Product, find_differing_counts
from cantata.contract.model.row_products import RowProduct

PERIOD = 120
"""FBGEMM's row blocks repeat after this many rows."""
_PROBE_INPUTS, _PROBE_OUTPUTS = 128, 32
_BEYOND_A_PERIOD = (121, 122, 127, 134, 151, 241, 247, 601)


def half_product(weight: torch.Tensor, bias: torch.Tensor | None = None) -> Product:
    """[out, in] float32, exact in float16 -> FBGEMM's own product from [R, in] to [R, out].

    torch recommends `quantized.linear_dynamic_fp16`, which is the same product. Its packed weights
    are a script object, and every call first checks whether that object overrides it. The check
    raises a C++ exception, which takes 8 us. A small layer's product takes 2 to 10 us.
    """
    multiply = torch.fbgemm_linear_fp16_weight_fp32_activation
    with warnings.catch_warnings():
        # Both warn once per process that they are deprecated.
        warnings.simplefilter("ignore", UserWarning)
        packed = torch.fbgemm_pack_gemm_matrix_fp16(weight)
        multiply(weight[:1], packed, None)
    return lambda rows: multiply(rows, packed, bias)


@cache
def missing_rows() -> tuple[int, ...] | None:
    """[PERIOD]: rows of padding for R rows, by R % PERIOD, so that a row's bits never depend on R.

    None if FBGEMM cannot be used here, because torch lacks it or no such numbers exist.
    """
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        return None
    weight, row = _probe()
    return find_missing_rows(half_product(weight), row)


def find_missing_rows(product: Product, row: torch.Tensor) -> tuple[int, ...] | None:
    """`missing_rows` for any product whose kernels depend on the row count modulo PERIOD.

    Args:
        product: [R, in] -> [R, out].
        row: [in], with inexact sums.
    """
    differing = set(find_differing_counts(product, row, range(1, PERIOD + 1), among=PERIOD))
    if PERIOD in differing:
        return None
    missing = [0] * PERIOD
    for count in reversed(range(1, PERIOD)):
        if count in differing:
            missing[count] = 1 + missing[(count + 1) % PERIOD]
    beyond = [count + missing[count % PERIOD] for count in _BEYOND_A_PERIOD]
    return None if find_differing_counts(product, row, beyond, among=PERIOD) else tuple(missing)


def describe(missing: Sequence[int] | None) -> str:
    """Describes the result of `missing_rows` in words."""
    if missing is None:
        return "oneDNN for all products; FBGEMM's differ with the number of rows"
    padded = sum(map(bool, missing))
    if not padded:
        return "FBGEMM as it is, for any number of rows"
    return f"FBGEMM with up to {max(missing)} rows more for {padded} of {PERIOD} numbers of rows"


def _probe() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(_PROBE_OUTPUTS, _PROBE_INPUTS, generator=generator)
    return weight.half().float(), torch.randn(_PROBE_INPUTS, generator=generator)


def is_half(weight: torch.Tensor) -> bool:
    """Whether every value is exact in float16."""
    return torch.equal(weight.half().float(), weight)


class PackedProduct:
    """[R, in] @ weight.T + bias -> [R, out], exact per row, without gradients.

    Args:
        weight: [out, in] float32 on the CPU. It is packed into a copy, so it may change later or
            be freed.
        bias: [out] float32, or None.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._made_of = _identity(weight)
        weight = weight.detach()
        self._bias = None if bias is None else bias.detach()
        missing = missing_rows()
        self._is_half = missing is not None and is_half(weight)
        # None where any number of rows is fine, so that a call skips the look-up.
        self._missing = missing if missing and any(missing) else None
        if self._is_half:
            self._by_fbgemm = half_product(weight, self._bias)
        else:
            self._by_onednn = RowProduct(weight)

    def is_for(self, weight: torch.Tensor) -> bool:
        """Whether it was made from this tensor in its current state."""
        return self._made_of == _identity(weight)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if self._is_half:
            if self._missing and (missing := self._missing[len(rows) % PERIOD]):
                return self._by_fbgemm(functional.pad(rows, (0, 0, 0, missing)))[: len(rows)]
            return self._by_fbgemm(rows)
        return self._by_onednn(rows, self._bias)


def _identity(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version
