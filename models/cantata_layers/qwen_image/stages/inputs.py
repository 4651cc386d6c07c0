"""What the request builder gives the stages.

Letters: P tokens, H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GridSize = tuple[int, int]
"""Tokens of a picture: rows, columns."""


@dataclass(frozen=True, slots=True)
class EncodeInput:
    """A prompt, and what the picture shall not show."""

    prompt: NDArray[np.int32]
    """[P] tokens."""
    negative: NDArray[np.int32] | None
    """[P] tokens; None: the picture is drawn without guidance."""
    pictures: tuple[NDArray[np.uint8], ...] = ()
    """[H, W, 3] each, as the text encoder sees them."""


@dataclass(frozen=True, slots=True)
class ReferenceInput:
    """Pictures that are changed."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, as the denoiser keeps them."""


@dataclass(frozen=True, slots=True)
class DenoiseInput:
    """One picture to draw."""

    seed: int
    grid: GridSize
    shares: tuple[float, ...]
    """Of noise before each step, and 0 after the last."""
    guidance: float
    """1: none."""
    references: tuple[GridSize, ...] = ()
    previews: int = 0
    """That the caller wants to see."""


@dataclass(frozen=True, slots=True)
class DecodeInput:
    """The picture's size."""

    grid: GridSize
