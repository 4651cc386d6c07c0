"""Projects rows to a talker's width with two layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear


class Projection(nn.Module):
    """[..., inputs] -> [..., outputs], by `inner` values with SiLU."""

    def __init__(self, inputs: int, inner: int, outputs: int) -> None:
        super().__init__()
        self.linear_fc1 = RowLinear(inputs, inner)
        self.linear_fc2 = RowLinear(inner, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(functional.silu(self.linear_fc1(x)))
        return projected
