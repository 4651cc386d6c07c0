"""How a picture is guided by what is in the context, as requests say it.

Source: `_forward_flow` of the publisher's bagel.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np


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
