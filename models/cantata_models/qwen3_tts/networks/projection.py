"""Projects text embeddings, which are wider than the talker, to its width with two layers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear


class TextProjection(nn.Module):
    """[..., text hidden size] -> [..., hidden size]."""

    def __init__(self, text_hidden_size: int, hidden_size: int) -> None:
        super().__init__()
        self.linear_fc1 = RowLinear(text_hidden_size, text_hidden_size)
        self.linear_fc2 = RowLinear(text_hidden_size, hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(functional.silu(self.linear_fc1(x)))
        return projected
