"""Latents of a picture as tokens of the language model, and velocities back.

Source: `vae2llm`, `llm2vae`, `time_embedder` and `latent_pos_embed` of the publisher's bagel.py.
The sinusoids of time are those of the diffusion literature (Peebles and Xie, 2023, after Vaswani et
al., 2017): cosines, then sines, of the time at geometric frequencies from 1 down to 1 / 10,000.

Letters: N tokens, P numbers of a token, D width of the language model.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from cantata.contract.model.row_products import RowLinear

SINUSOIDS = 256
"""Numbers of a time before the network."""
SLOWEST = 10_000


class LatentTokens(nn.Module):
    """Weights around the language model.

    Args:
        numbers: P.
        width: D.
        table: rows of the table of positions.
    """

    def __init__(self, numbers: int, width: int, table: int) -> None:
        super().__init__()
        self.into, self.out = RowLinear(numbers, width), RowLinear(width, numbers)
        self.time_in, self.time_out = RowLinear(SINUSOIDS, width), RowLinear(width, width)
        self.pos_embed = nn.Parameter(torch.empty(table, width))
        self.side = math.isqrt(table)
        """Of the table, in tokens."""

    def forward(self, latents: torch.Tensor, time: float, places: torch.Tensor) -> torch.Tensor:
        """[N, P] -> [N, D].

        Args:
            latents: of one picture.
            time: its share of noise, 0 to 1.
            places: [N] in the table of positions.
        """
        return torch.as_tensor(self.into(latents) + self.of_time(time) + self.pos_embed[places])

    def of_time(self, time: float) -> torch.Tensor:
        """[1, D]."""
        weight = self.time_in.weight
        half = torch.arange(SINUSOIDS // 2, dtype=torch.float32, device=weight.device)
        angles = time * torch.exp(-math.log(SLOWEST) * half / len(half))
        waves = torch.cat([angles.cos(), angles.sin()])[None].to(weight.dtype)
        return torch.as_tensor(self.time_out(functional.silu(self.time_in(waves))))

    def velocities(self, x: torch.Tensor) -> torch.Tensor:
        """[N, D] behind the language model -> [N, P] float32: noise minus picture."""
        return torch.as_tensor(self.out(x).float())
