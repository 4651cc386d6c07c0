"""The text encoder's patches of pictures, by transformers' own processor.

Letters: H height, W width, N patches, V values of a patch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import PROCESSOR
from cantata_layers.qwen_image.text.pictures import Size


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
