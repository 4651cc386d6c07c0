"""Rotary positions on several axes (M-RoPE, arXiv:2409.12191) for vLLM's attention layers.

WHY not vLLM's own: it looks angles up by whole positions, and frames of a video may be fractions
apart.

Letters: A axes, N rows, D head size, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn


class AxialRotation(nn.Module):
    """Turns queries and keys; stands where vLLM's layers have their rotary embedding.

    A layer passes on what it gets as positions; here these are angles, made once for all layers.

    Args:
        head_dim: D.
        axes: [D / 2] the axis by which each frequency turns.
    """

    def __init__(self, head_dim: int, theta: float, axes: Sequence[int]) -> None:
        super().__init__()
        exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        self.inverse_frequencies: torch.Tensor
        self.register_buffer("inverse_frequencies", theta**-exponents, persistent=False)
        self.axes: torch.Tensor
        self.register_buffer("axes", torch.tensor(axes), persistent=False)
        self._head_dim = head_dim

    def angles(self, positions: torch.Tensor) -> torch.Tensor:
        """[N] or [A, N] positions -> [N, D / 2] float32."""
        by_axis = positions.float() if positions.ndim == 2 else positions.float()[None]
        axes = self.axes if positions.ndim == 2 else torch.zeros_like(self.axes)
        return by_axis[axes].T * self.inverse_frequencies

    def forward(
        self, angles: torch.Tensor, query: torch.Tensor, key: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """[N, D / 2] angles, [N, H * D] queries and keys -> both, turned."""
        cos, sin = angles.cos()[:, None].to(query.dtype), angles.sin()[:, None].to(query.dtype)
        return self._rotate(query, cos, sin), self._rotate(key, cos, sin)

    def _rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        low, high = x.view(len(x), -1, self._head_dim).chunk(2, dim=-1)
        turned = (low * cos - high * sin, high * cos + low * sin)
        return torch.cat(turned, dim=-1).view_as(x)


def interleaved_axes(sections: Sequence[int]) -> list[int]:
    """Axes of the frequencies that take turns: time, height, width, time, ... as far as each
    section lasts; the rest is time's."""
    axes = [0] * sum(sections)
    for axis, count in enumerate(sections[1:], start=1):
        axes[axis : 3 * count : 3] = [axis] * count
    return axes


def consecutive_axes(sections: Sequence[int]) -> list[int]:
    """Axes of the frequencies, section by section."""
    return [axis for axis, count in enumerate(sections) for _ in range(count)]
