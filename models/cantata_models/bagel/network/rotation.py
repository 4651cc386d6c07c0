"""Rotary positions of the language model (Su et al., 2021), over the two halves of a head.

Letters: L tokens, H heads, C columns of a head, F = C / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Rotation:
    """[L, 1, F] float32 cosines and sines."""

    cos: torch.Tensor
    sin: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[L, H, C] -> the same shape and dtype, turned in float32."""
        low, high = x.float().chunk(2, dim=-1)
        turned = (low * self.cos - high * self.sin, high * self.cos + low * self.sin)
        return torch.cat(turned, dim=-1).to(x.dtype)

    @classmethod
    def join(cls, parts: Sequence[Rotation]) -> Rotation:
        """Of the tokens of all parts; at least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([p.cos for p in parts]), torch.cat([p.sin for p in parts]))


class Rotations:
    """Makes the rotations of one model."""

    def __init__(self, head: int, theta: float, device: torch.device) -> None:
        exponents = torch.arange(0, head, 2, device=device).float() / head
        self._frequencies = 1.0 / theta**exponents

    def line(self, first: int, tokens: int) -> Rotation:
        """Of tokens one after the other."""
        places = torch.arange(first, first + tokens, device=self._frequencies.device)
        return self._at(places)

    def point(self, place: int, tokens: int) -> Rotation:
        """Of tokens at the same position."""
        at = self._at(torch.full((1,), place, device=self._frequencies.device))
        # WHY expanded: a cosine's bits may depend on how many are computed with it.
        return Rotation(at.cos.expand(tokens, -1, -1), at.sin.expand(tokens, -1, -1))

    def _at(self, places: torch.Tensor) -> Rotation:
        angles = (places.float()[:, None] * self._frequencies)[:, None]
        return Rotation(angles.cos(), angles.sin())
