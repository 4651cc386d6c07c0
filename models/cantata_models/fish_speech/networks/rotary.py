"""Rotary positions that turn neighbouring channels, by cosines and sines rounded to bfloat16.

Both stacks and the codec round their tables so, whatever the weights' precision (Su et al., 2021,
for the rotation). Letters: B rows, T positions, E head size.
"""

from __future__ import annotations

import torch

from cantata_layers.rotation import Rotation


def rounded(table: torch.Tensor) -> torch.Tensor:
    """[...] to the nearest bfloat16, in its own dtype."""
    return table.to(torch.bfloat16).to(table.dtype)


def tables(positions: int, head_dim: int, theta: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of positions 0.., each [positions, E / 2] float32."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    frequencies = 1.0 / theta**exponents
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    return rounded(angles.cos()), rounded(angles.sin())


def pairs_as_halves(rows: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Reorder the rows that make queries or keys, [heads * E, inputs].

    The checkpoints turn channels 2i and 2i + 1 of a head, most layers here i and i + E / 2. A
    product of a query and a key is the same in every order of their channels.
    """
    by_pair = rows.view(-1, head_dim // 2, 2, rows.shape[1])
    return by_pair.transpose(1, 2).reshape(rows.shape)


class RoundedRotation(Rotation):
    """`Rotation` by rounded cosines and sines."""

    def __init__(self, positions: torch.Tensor, frames: int, inverse_frequencies: torch.Tensor):
        super().__init__(positions, frames, inverse_frequencies)
        self._cos, self._sin = rounded(self._cos), rounded(self._sin)
