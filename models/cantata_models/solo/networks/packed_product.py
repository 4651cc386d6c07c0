"""Matrix products whose float32 result for a row, on a CPU, does not depend on the other rows.

Matrix libraries choose the kernel, and so the order of summation, by the number of rows.

- FBGEMM with weights packed as float16 always gives a row the same bits if the number of rows suits
  this CPU's kernels. `fbgemm_rows` measures which numbers do; other numbers are padded with zeros.
  For a few rows the cost is reading the weights, which are half as large. With AVX-512 one row
  takes a seventh to a third of oneDNN's time, eight rows a third to two thirds, 64 or more the
  same. Weights that are exact in float16, as all weights of a checkpoint are, lose nothing.
- oneDNN does this for any number of rows (`contract.model.row_products`). It handles all other
  weights, and all weights where FBGEMM cannot be used.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from cantata.contract.model.row_products import RowProduct
from cantata_models.solo.networks.fbgemm_rows import PERIOD, half_product, missing_rows


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
