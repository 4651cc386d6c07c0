"""Matrix products whose float32 results on a CPU do not depend on the rows beside a row.

Matrix libraries choose kernels, and with them the order of summation, by the number of rows. What
was measured (torch 2.13, AVX-512, one and two threads, every shape used here):

- FBGEMM with weights packed as float16 gives a row the same bits in any company. A few rows cost
  what reading the weights costs, and these are half as large: against oneDNN a sixth to a third of
  the time for one row, half for eight, the same from 64 on. Weights that float16 holds exactly, as
  all of a checkpoint are, lose nothing by it.
- oneDNN with weights packed once does so too; only a single row of more than a thousand features
  takes another kernel, so there are always two. It is for all other weights and processors.
"""

from __future__ import annotations

import torch

PACKED_ROWS = 16
"""Rows for which oneDNN lays out the weights; any number may be multiplied."""
FBGEMM_ENGINES = ("x86", "fbgemm")
"""torch's names for the engine that has products with float16 weights."""


def is_half(weight: torch.Tensor) -> bool:
    """Whether float16 holds every value exactly."""
    return torch.equal(weight.half().float(), weight)


class PackedProduct:
    """[R, in] @ weight.T + bias -> [R, out], exact per row, without gradients.

    Args:
        weight: [out, in] float32 on the CPU; laid out anew now, so it may change later or go.
        bias: [out] float32, or none.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self._made_of = _identity(weight)
        weight = weight.detach()
        self._bias = None if bias is None else bias.detach()
        self._is_half = torch.backends.quantized.engine in FBGEMM_ENGINES and is_half(weight)
        if self._is_half:
            self._packed = torch.ops.quantized.linear_prepack_fp16(weight, self._bias)
        else:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)

    def is_of(self, weight: torch.Tensor) -> bool:
        """Whether it was made of this tensor as it is now."""
        return self._made_of == _identity(weight)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if self._is_half:
            return torch.as_tensor(torch.ops.quantized.linear_dynamic_fp16(rows, self._packed))
        if len(rows) == 1:
            return self._by_onednn(rows.expand(2, -1).contiguous())[:1]
        return self._by_onednn(rows)

    def _by_onednn(self, rows: torch.Tensor) -> torch.Tensor:
        product = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self._bias, "none", [], "")
        return torch.as_tensor(product)


def _identity(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version
