"""Large pictures in overlapping tiles, for less memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tiling:
    """When and how pictures are cut into tiles; all in pixels."""

    above: int
    """Height times width from which tiles are used, exclusively."""
    size: int = 256
    """Of a tile's side."""
    stride: int = 192
    """From one tile to the next."""
