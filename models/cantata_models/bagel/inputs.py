"""What the request builder gives the stages.

Letters: T tokens of a text, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata_models.bagel.sampling.guidance import Guidance

GridSize = tuple[int, int]
"""Tokens of a picture: rows, columns."""
Tokens = tuple[int, ...]
"""Of a text, with its marks of begin and end."""


@dataclass(frozen=True, slots=True)
class SeeInput:
    """Pictures for the vision transformer."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, of the size at which they are seen."""


@dataclass(frozen=True, slots=True)
class ReferenceInput:
    """Pictures that are changed."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, of the size at which they are encoded."""
    seed: int
    """Of the request: the encoder samples."""


@dataclass(frozen=True, slots=True)
class ReferenceGrids:
    """A picture that is changed, as it stands in the context."""

    kept: GridSize
    """Of its latents."""
    seen: GridSize
    """Of the vision transformer."""


@dataclass(frozen=True, slots=True)
class ThoughtInput:
    """What is thought before the picture is drawn."""

    system: Tokens
    """The text that asks for it."""
    most: int
    """Tokens to compute at most, at least 1."""
    temperature: float
    """0: always the likeliest token."""


@dataclass(frozen=True, slots=True)
class DrawInput:
    """One picture to draw."""

    seed: int
    prompt: Tokens
    grid: GridSize
    times: tuple[float, ...]
    """The share of noise before each step, and 0 after the last."""
    guidance: Guidance
    references: tuple[ReferenceGrids, ...] = ()
    thought: ThoughtInput | None = None
    previews: int = 0
    """That the caller wants to see."""


@dataclass(frozen=True, slots=True)
class DecodeInput:
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
    most: int
    """Tokens of the answer at most, at least 1."""
    temperature: float
    """0: always the likeliest token."""
    seed: int
