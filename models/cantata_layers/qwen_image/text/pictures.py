"""Pictures beside a prompt: how large they are for the text encoder, for the denoiser and in the
result.

Sizes: `calculate_dimensions` and `__call__` of the pipelines for edits in diffusers.

Letters: H height, W width."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.qwen_image.config import Family

ROUNDED = 32
"""Pixels, to a multiple of which sides are rounded."""
MAX_UNEQUAL = 50


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a picture in pixels."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class EditAreas:
    """Pixels in all, near which pictures are resized."""

    seen: int
    """By the text encoder."""
    kept: int
    """For the denoiser, and of the result unless a request asks for another."""


EDIT_AREAS = {
    Family.EDIT: EditAreas(seen=1024**2, kept=1024**2),
    Family.EDIT_PLUS: EditAreas(seen=384**2, kept=1024**2),
}


def near_area(area: int, size: Size) -> Size:
    """The size of about this area with the ratio of another. Raises InvalidRequest: the picture is
    too narrow."""
    if max(size.width, size.height) > MAX_UNEQUAL * min(size.width, size.height):
        raise InvalidRequest(
            f"image: {size.width}x{size.height} is too narrow; one side may be "
            f"{MAX_UNEQUAL} times the other",
            "image",
        )
    ratio = size.width / size.height
    width = math.sqrt(area * ratio)
    height = width / ratio
    return Size(round(width / ROUNDED) * ROUNDED, round(height / ROUNDED) * ROUNDED)


def get_size(pixels: NDArray[np.uint8]) -> Size:
    """The size of a picture [H, W, 3]."""
    return Size(pixels.shape[1], pixels.shape[0])


def resized(pixels: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """[H, W, 3] -> the same of another size, by Lanczos' filter."""
    if get_size(pixels) == size:
        return pixels
    image = Image.fromarray(pixels).resize((size.width, size.height), Image.Resampling.LANCZOS)
    return np.asarray(image)
