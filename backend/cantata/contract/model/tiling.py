"""Large pictures in overlapping tiles, for less memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tiling:
    """When and how pictures are cut into tiles, in pixels."""

    above: int
    """Pictures with more pixels than this (height times width) are tiled."""
    size: int = 256
    """Side of a tile."""
    stride: int = 192
    """Distance from one tile to the next."""
