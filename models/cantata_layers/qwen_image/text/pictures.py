"""Pictures beside a prompt: how large they are for the text encoder, for the denoiser and in the
result, and the text encoder's patches of them, by transformers' own processor.

Sizes: `calculate_dimensions` and `__call__` of the pipelines for edits in diffusers.

Letters: H height, W width, N patches, V values of a patch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.qwen_image.config import PROCESSOR, Family


@dataclass(frozen=True, slots=True)
class Patches:
    """One picture."""

    values: NDArray[np.float32]
    """[N, V]"""
    grid: tuple[int, int, int]
    """Patches in time, height and width."""


class PatchMaker:
    """Cuts pictures into patches as a checkpoint's processor does. Safe to call from several
    threads.

    Args:
        checkpoint: its folder.

    Raises:
        ConfigError: the processor's file is missing or damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        folder = checkpoint / PROCESSOR
        loader: Any = Qwen2VLImageProcessorPil
        try:
            self._processor = loader.from_pretrained(folder, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{folder}: no readable preprocessor_config.json: {error}") from error

    def tokens(self, size: Size) -> int:
        """How many tokens of a prompt a picture of this size takes."""
        patches: int = self._processor.get_number_of_image_patches(size.height, size.width, {})
        return patches // int(self._processor.merge_size) ** 2

    def patches(self, pixels: NDArray[np.uint8]) -> Patches:
        """Cut up uint8 [H, W, 3]."""
        output = self._processor([Image.fromarray(pixels)], return_tensors="np")
        time, height, width = output["image_grid_thw"][0].tolist()
        return Patches(output["pixel_values"].astype(np.float32), (time, height, width))


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
    """The size of about this area with the ratio of another.

    Raises:
        InvalidRequest: the picture is too narrow.
    """
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
