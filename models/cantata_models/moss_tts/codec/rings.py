"""What a window of attention looks back on: the last keys and values of a layer, in a ring.

A position's place in the ring is its number modulo the ring's length, so nothing is moved when
positions arrive. P of them arrive at a time. The ring holds those and the W - 1 before them; no
position that they attend to is overwritten.

A row's attention always has the same shape, and each key the same place, however many rows and
frames a call has: so its sums have the same order.

Letters: S slots, B rows of one call, P positions at a time, W the window, R = W - 1 + P places,
H heads, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional


def places(window: int, positions: int) -> int:
    """R: the length of a ring that takes `positions` at a time."""
    return window - 1 + positions


@dataclass(frozen=True, slots=True)
class Arrival:
    """P positions of each row, as the layers of one transformer see them."""

    places: torch.Tensor
    """[B, P] int64: where they go."""
    mask: torch.Tensor
    """[B, 1, P, R] float32: 0 for what a position attends to, -inf for the rest."""

    @classmethod
    def after(cls, before: torch.Tensor, positions: int, window: int) -> Arrival:
        """The next `positions` of rows with `before` [B] int64 positions before them."""
        length = places(window, positions)
        numbers = before[:, None] + torch.arange(positions, device=before.device)
        # Each place holds the latest position that belongs there; a negative one never came.
        latest = numbers[:, -1:]
        held = latest - (latest - torch.arange(length, device=before.device)) % length
        last = numbers[:, :, None]
        first = (last - window + 1).clamp(min=0)
        seen = (first <= held[:, None]) & (held[:, None] <= last)
        return cls(numbers % length, torch.where(seen, 0.0, -torch.inf)[:, None])


class Ring:
    """One layer's keys and values, for every slot.

    A slot that starts anew needs no reset: the mask hides what it held.
    """

    def __init__(
        self, slots: int, length: int, heads: int, head_dim: int, device: torch.device
    ) -> None:
        shape = (slots, length, heads, head_dim)
        self.keys = torch.zeros(shape, device=device)
        """[S, R, H, D] float32, as the values."""
        self.values = torch.zeros(shape, device=device)

    def attend(
        self,
        slots: torch.Tensor,
        arrival: Arrival,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
    ) -> torch.Tensor:
        """Store keys and values of [B, P, H, D] and return what each position attends to.

        Args:
            slots: [B] int64, all different.
            arrival: the positions' places and mask.
            query: [B, P, H, D]; so are `key` and `value`, and the result.
        """
        where = slots[:, None], arrival.places
        self.keys[where], self.values[where] = key, value
        attend = row_by_row if query.device.type == "cpu" else together
        return attend(query, self.keys, self.values, slots, arrival.mask)


def row_by_row(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """[B, P, H, D] -> [B, P, H, D], always in the shape of one row, and without a copy of rings."""
    rows = [
        _attention(
            query[row : row + 1],
            keys[slot : slot + 1],
            values[slot : slot + 1],
            mask[row : row + 1],
        )
        for row, slot in enumerate(slots.tolist())
    ]
    return torch.cat(rows)


def together(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slots: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """As `row_by_row`, at once."""
    return _attention(query, keys[slots], values[slots], mask)


def _attention(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """[B, P, H, D] x [B, R, H, D] -> [B, P, H, D]."""
    output = functional.scaled_dot_product_attention(
        query.transpose(1, 2), keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask
    )
    return output.transpose(1, 2)
