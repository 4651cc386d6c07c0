"""A linear layer for a codec, whose calls have many rows, one per position.

Letters: I inputs, O outputs.
"""

from __future__ import annotations

from functools import partial

import torch
from torch.nn import functional

from cantata.contract.model.row_products import RowProduct
from cantata_layers.weights import Weights

TYPICAL_ROWS = 64
"""oneDNN optimises the weight layout for this many rows; any number works."""


class Linear:
    """[..., I] -> [..., O], exact per row in fp32 on a CPU.

    Args:
        weight: [O, I].
        bias: [O].
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        self.inputs, self.outputs = weight.shape[1], weight.shape[0]
        self._bias = bias
        on_cpu = weight.device.type == "cpu"
        self._multiply: RowProduct | partial[torch.Tensor] = (
            RowProduct(weight, TYPICAL_ROWS)
            if on_cpu
            else partial(functional.linear, weight=weight)
        )

    @classmethod
    def load(
        cls, weights: Weights, name: str, inputs: int, outputs: int, bias: bool = False
    ) -> Linear:
        """Load `name`.weight and, if wanted, `name`.bias."""
        weight = weights.take(f"{name}.weight", outputs, inputs)
        return cls(weight, weights.take(f"{name}.bias", outputs) if bias else None)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        output = self._multiply(x.reshape(-1, self.inputs), bias=self._bias)
        return output.view(*x.shape[:-1], self.outputs)
