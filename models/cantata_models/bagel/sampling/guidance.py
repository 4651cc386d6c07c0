"""Guidance by what is in the context: away from the velocity without the prompt, and away from that
without the pictures; then the velocity is made no longer than it was.

Source: `_forward_flow` of the publisher's bagel.py.

Letters: N tokens, P numbers of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch

TINY = 1e-8


class Renorm(StrEnum):
    """Which lengths are kept."""

    GLOBAL = "global"
    """That of the whole picture's velocity."""
    CHANNEL = "channel"
    """Each token's."""
    TEXT_CHANNEL = "text_channel"
    """Each token's, before the guidance by pictures."""


class Branch(StrEnum):
    """What a velocity knows."""

    FULL = "full"
    NO_TEXT = "no_text"
    """All but the prompt and the thought."""
    NO_IMAGES = "no_images"
    """The texts that were given."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """How a picture is guided."""

    text: float
    """How much closer to the prompt; 1 is no guidance at all."""
    image: float
    """How much closer to the pictures in the context; 1 is none."""
    interval: tuple[float, float]
    """Shares of noise between which there is guidance: above the first, up to the second."""
    renorm: Renorm
    least: float = 0.0
    """The least factor by which a velocity may be shortened."""

    def branches(self, time: float) -> tuple[Branch, ...]:
        """That a step needs at this share of noise."""
        low, high = np.float32(self.interval[0]), np.float32(self.interval[1])
        if self.text <= 1 or not low < np.float32(time) <= high:
            return (Branch.FULL,)
        without_images = (Branch.NO_IMAGES,) if self.image > 1 else ()
        return (Branch.FULL, Branch.NO_TEXT, *without_images)

    def guided(
        self, full: torch.Tensor, no_text: torch.Tensor, no_images: torch.Tensor | None
    ) -> torch.Tensor:
        """[N, P] float32 velocities of the branches -> the one to follow."""
        moved = no_text + self.text * (full - no_text)
        if self.renorm is Renorm.TEXT_CHANNEL:
            return self._seen(moved * self._factor(full, moved, dim=-1), no_images)
        moved = self._seen(moved, no_images)
        dim = -1 if self.renorm is Renorm.CHANNEL else None
        return moved * self._factor(full, moved, dim)

    def _seen(self, velocity: torch.Tensor, no_images: torch.Tensor | None) -> torch.Tensor:
        if no_images is None:
            return velocity
        return no_images + self.image * (velocity - no_images)

    def _factor(self, kept: torch.Tensor, moved: torch.Tensor, dim: int | None) -> torch.Tensor:
        wanted, found = (
            torch.linalg.vector_norm(part, dim=dim, keepdim=True) for part in (kept, moved)
        )
        return torch.clamp(wanted / (found + TINY), min=self.least, max=1.0)
