"""Matrix products whose float32 results on a CPU do not depend on the rows beside a row.

Matrix libraries choose kernels, and with them the order of summation, by the number of rows. What
was measured (torch 2.13, AVX-512, one and two threads, every shape used here):

- FBGEMM with weights packed as float16 gives a row the same bits in any company. A few rows cost
  what reading the weights costs, and these are half as large: against oneDNN a seventh to a third
  of the time for one row, a third to two thirds for eight, the same from 64 on. Weights that
  float16 holds exactly, as all of a checkpoint are, lose nothing by it.
- oneDNN with weights packed once does so too; only a single row of more than a thousand features
  takes another kernel, so there are always two. It is for all other weights and processors.
"""

from __future__ import annotations

import warnings

import torch

PACKED_ROWS = 16
"""Rows for which oneDNN lays out the weights; any number may be multiplied."""


def is_half(weight: torch.Tensor) -> bool:
    """Whether float16 holds every value exactly."""
    return torch.equal(weight.half().float(), weight)


def has_fbgemm() -> bool:
    """Whether this build of torch has FBGEMM's products and the processor can run them."""
    return "fbgemm" in torch.backends.quantized.supported_engines


def _pack_half(weight: torch.Tensor) -> torch.Tensor:
    """[out, in] float32 -> a handle of the float16 weights as FBGEMM lays them out.

    torch would rather have `quantized.linear_dynamic_fp16`, which is the same product. Its packed
    weights are a script object, and every call first asks whether that overrides it; the answer is
    a C++ exception, which takes 8 us. A small layer's product takes 2 to 10.
    """
    with warnings.catch_warnings():
        # Both say once in a process that they are deprecated.
        warnings.simplefilter("ignore", UserWarning)
        packed = torch.fbgemm_pack_gemm_matrix_fp16(weight)
        torch.fbgemm_linear_fp16_weight_fp32_activation(weight[:1], packed, None)
    return packed


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
        self._is_half = has_fbgemm() and is_half(weight)
        if self._is_half:
            self._packed = _pack_half(weight)
        else:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)

    def is_of(self, weight: torch.Tensor) -> bool:
        """Whether it was made of this tensor as it is now."""
        return self._made_of == _identity(weight)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        if self._is_half:
            return torch.fbgemm_linear_fp16_weight_fp32_activation(rows, self._packed, self._bias)
        if len(rows) == 1:
            return self._by_onednn(rows.expand(2, -1).contiguous())[:1]
        return self._by_onednn(rows)

    def _by_onednn(self, rows: torch.Tensor) -> torch.Tensor:
        product = torch.ops.mkldnn._linear_pointwise(rows, self._packed, self._bias, "none", [], "")
        return torch.as_tensor(product)


def _identity(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version
