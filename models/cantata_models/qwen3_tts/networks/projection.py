"""Text embeddings are wider than the talker: two layers bring them to its width."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class TextProjection(nn.Module):
    """[..., text hidden size] -> [..., hidden size]."""

    def __init__(self, text_hidden_size: int, hidden_size: int) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(text_hidden_size, text_hidden_size)
        self.linear_fc2 = nn.Linear(text_hidden_size, hidden_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_fc2(functional.silu(self.linear_fc1(x)))
        return projected
