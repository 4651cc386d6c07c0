"""Weights in int8 on a CPU: a quarter of float32's memory, and of what a step has to read.

A weight has one scale for each output, and a row of inputs gets one of its own. oneDNN adds the
products as integers, which is exact, so a row has the same bits among any number of rows.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from vllm import _custom_ops

_MAX_INT8 = 127


class Int8Product:
    """[R, I] @ weight.T + bias -> [R, O] in the weight's dtype.

    Args:
        weight: [O, I] float32 or bfloat16, which is not kept.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        exact = weight.detach().float()
        # WHY kept: oneDNN's handle has a copy of the weight, but only a pointer to the scales.
        self._scales = exact.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / _MAX_INT8
        self._handle = _custom_ops.create_onednn_scaled_mm(
            (exact / self._scales).round().to(torch.int8).t(),
            self._scales,
            weight.dtype,
            dynamic_quant=True,
            use_azp=False,
        )

    def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        quantized, scales, _ = _custom_ops.onednn_scaled_int8_quant(rows.contiguous())
        out = rows.new_empty(len(rows), self._handle.n)
        _custom_ops.onednn_scaled_mm(self._handle, quantized, out, scales, None, None, bias)
        return out
