"""Keys and values by lane: a row of memory for each request that runs, as long as a request may be.

Lanes instead of pages: `lanes` keeps those in use together, so a step over B requests reads lanes 0
to B - 1 as a view, without a table, a gather or a kernel that knows of pages. A request's memory is
allocated whole either way, because a stream must never wait for another's.

Letters: B lanes of this step, T positions of a prompt, N = B or B * T, H query heads, K key-value
heads, E head size, L positions that are read, P positions of a lane.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import torch
from torch.nn import functional

from cantata.contract.model.plain_talker import AttentionMemory


class LaneMemory(AttentionMemory, Protocol):
    """What an engine asks of the memory that a talker has made by its kernels."""

    @property
    def num_bytes(self) -> int:
        """Of all lanes."""
        ...

    def plan_decode(self, positions: torch.Tensor, longest: int) -> None:
        """Next, one position of each of the first lanes.

        Args:
            positions: [B] int64.
            longest: L, greater than every position that matters.
        """
        ...

    def plan_prompts(self, lanes: torch.Tensor, length: int) -> None:
        """Next, the first T positions of these lanes, one lane after the other.

        Args:
            lanes: [B] int64.
            length: T.
        """
        ...

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of a lane to another one."""
        ...


_Attend = Callable[..., torch.Tensor]
"""A layer's keys and values [lanes, K, P, E], then new queries, keys and values -> [N, H * E]."""


class TorchLanes:
    """Attention by torch's own kernels. Implements `LaneMemory`."""

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        head_size: int,
        *,
        lanes: int,
        positions: int,
        dtype: torch.dtype,
    ) -> None:
        shape = (layers, lanes, kv_heads, positions, head_size)
        self._keys, self._values = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)
        self._attend: _Attend | None = None

    @property
    def num_bytes(self) -> int:
        """Of all lanes."""
        return self._keys.nbytes + self._values.nbytes

    def plan_decode(self, positions: torch.Tensor, longest: int) -> None:
        """[B]: the next call brings one position of each of the first lanes."""
        lanes = torch.arange(len(positions), device=positions.device)
        seen = torch.arange(longest, device=positions.device) <= positions[:, None]
        # Added to scores, once for all layers: a mask of booleans would be turned into it in each.
        mask = torch.zeros(seen.shape, dtype=self._keys.dtype, device=positions.device)
        mask = mask.masked_fill(~seen, -torch.inf)[:, None, None]
        self._attend = partial(_attend_to_past, lanes, positions, mask)

    def plan_prompts(self, lanes: torch.Tensor, length: int) -> None:
        """[B]: the next call brings T positions of each of these lanes."""
        self._attend = partial(_attend_in_prompt, lanes, length)

    def attend(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """[N, H, E], [N, K, E], [N, K, E] -> [N, H * E]; see `AttentionMemory`."""
        assert self._attend is not None, "attention without a plan"
        return self._attend(self._keys[layer], self._values[layer], queries, keys, values)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of a lane to another one."""
        for kept in (self._keys, self._values):
            kept[:, target, :, :length].copy_(kept[:, source, :, :length])


def _attend_to_past(
    lanes: torch.Tensor,
    positions: torch.Tensor,
    mask: torch.Tensor,
    old_keys: torch.Tensor,
    old_values: torch.Tensor,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """One position of each lane, to all before it. The mask is [B, 1, 1, L]."""
    old_keys[lanes, :, positions] = keys
    old_values[lanes, :, positions] = values
    count, kv_heads, size = keys.shape
    longest = mask.shape[-1]
    # The heads that share keys stand in the place of positions: their keys are read once.
    shared = queries.view(count, kv_heads, -1, size)
    attended = functional.scaled_dot_product_attention(
        shared, old_keys[:count, :, :longest], old_values[:count, :, :longest], attn_mask=mask
    )
    return attended.reshape(count, -1)


def _attend_in_prompt(
    lanes: torch.Tensor,
    length: int,
    old_keys: torch.Tensor,
    old_values: torch.Tensor,
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """T positions of each lane, which are its first ones."""
    asking, keys, values = (
        rows.view(len(lanes), length, -1, rows.shape[-1]).transpose(1, 2)
        for rows in (queries, keys, values)
    )
    old_keys[:, :, :length].index_copy_(0, lanes, keys)
    old_values[:, :, :length].index_copy_(0, lanes, values)
    attended = functional.scaled_dot_product_attention(
        asking, keys, values, is_causal=True, enable_gqa=True
    )
    return attended.transpose(1, 2).reshape(len(queries), -1)
