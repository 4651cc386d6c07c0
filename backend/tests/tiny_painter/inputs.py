"""What the tiny painter's stages are given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CELL = 8
"""Pixels of a token's side."""


@dataclass(frozen=True)
class TinyPrompt:
    """For the text encoder."""

    text: str


@dataclass(frozen=True)
class TinyReferences:
    """For the encoder of references."""

    pictures: tuple[NDArray[np.uint8], ...]


@dataclass(frozen=True)
class TinyCanvas:
    """For the denoiser."""

    width: int
    height: int
    seed: int
    steps: int
    previews: int = 0
    guidance: float = 1.0
    has_references: bool = False
    fault: str = ""
    step_s: float = 0.0
    """What each step takes longer."""

    @property
    def tokens(self) -> int:
        return (self.width // CELL) * (self.height // CELL)


@dataclass(frozen=True)
class TinySize:
    """For the decoder."""

    width: int
    height: int
    shade: float = 0.0
    """How much darker, up to black."""
    ink: str = "colour"
    """Or `grey`."""
    mirrored: bool = False
