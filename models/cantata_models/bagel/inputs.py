"""What the request builders give the stages: contexts, steps, and how a picture is guided.

Source of the guidance: `_forward_flow` of the publisher's bagel.py.

Letters: T tokens of a text, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


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
    min_scale: float = 0.0
    """The least factor by which a velocity may be shortened."""

    def branches(self, time: float) -> tuple[Branch, ...]:
        """That a step needs at this share of noise."""
        low, high = np.float32(self.interval[0]), np.float32(self.interval[1])
        if self.text <= 1 or not low < np.float32(time) <= high:
            return (Branch.FULL,)
        without_images = (Branch.NO_IMAGES,) if self.image > 1 else ()
        return (Branch.FULL, Branch.NO_TEXT, *without_images)


GridSize = tuple[int, int]
"""Tokens of a picture: rows, columns."""
Tokens = tuple[int, ...]
"""Of a text, with its marks of begin and end."""


@dataclass(frozen=True, slots=True)
class VisionInput:
    """Pictures for the vision transformer."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, of the size at which they are seen."""


@dataclass(frozen=True, slots=True)
class BagelReferenceInput:
    """Pictures that stand before the one that is drawn."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, of the size at which they are encoded."""
    seed: int
    """Of the request: the encoder samples."""


@dataclass(frozen=True, slots=True)
class ReferenceGrids:
    """Stands for a picture in the context of one that is drawn, where it stands twice."""

    kept: GridSize
    """Of its latents."""
    seen: GridSize
    """Of the vision transformer."""


ContextPart = Tokens | ReferenceGrids
"""What stands before a picture that is drawn."""


@dataclass(frozen=True, slots=True)
class ThoughtInput:
    """What is thought before the picture is drawn."""

    max_tokens: int
    """Tokens to compute at most, at least 1."""
    temperature: float
    """0: always the likeliest token."""


@dataclass(frozen=True, slots=True)
class DrawInput:
    """One picture to draw."""

    seed: int
    parts: tuple[ContextPart, ...]
    """What stands before it, in order; the last one is the prompt."""
    grid: GridSize
    times: tuple[float, ...]
    """The share of noise before each step, and 0 after the last."""
    guidance: Guidance
    thought: ThoughtInput | None = None
    previews: int = 0
    """That the caller wants to see."""

    @property
    def references(self) -> tuple[ReferenceGrids, ...]:
        """The pictures among the parts."""
        return tuple(part for part in self.parts if isinstance(part, ReferenceGrids))


@dataclass(frozen=True, slots=True)
class BagelDecodeInput:
    """The picture's size."""

    grid: GridSize


@dataclass(frozen=True, slots=True)
class Seen:
    """Stands for a picture in a conversation; its tokens come from the vision transformer."""

    tokens: int


@dataclass(frozen=True, slots=True)
class AnswerInput:
    """A conversation to be answered."""

    parts: tuple[Tokens | Seen, ...]
    """In their order, at least one."""
    max_tokens: int
    """Tokens of the answer at most, at least 1."""
    temperature: float
    """0: always the likeliest token."""
    seed: int
