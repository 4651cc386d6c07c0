"""The stage of the vision transformer.

Letters: L patches of all pictures, D width of the language model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError
from cantata_layers.picture_key import picture_key
from cantata_layers.qwen_image.dtypes import dtype_on
from cantata_layers.qwen_image.grid import Grid
from cantata_models.bagel.config import load_config
from cantata_models.bagel.inputs import VisionInput
from cantata_models.bagel.network.load import load_vision
from cantata_models.bagel.network.vision import Vision, to_patches
from cantata_models.bagel.ports import SEEN
from cantata_models.bagel.vae.coder import to_planes


class VisionEncoderStage:
    """Implements `contract.model.feed_forward.FeedForward`.

    Args:
        vision: of the checkpoint.
        patch: pixels on a side.
    """

    def __init__(self, vision: Vision, patch: int) -> None:
        self._vision, self._patch = vision, patch

    def key(self, inputs: VisionInput) -> bytes:
        """Hash of the pixels."""
        return picture_key(inputs.pictures)

    def run(self, batch: Sequence[VisionInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """See pictures one after the other: their sizes differ."""
        return [
            {SEEN: Rows(torch.cat([self._seen(p) for p in inputs.pictures]).cpu().numpy())}
            for inputs in batch
        ]

    @torch.inference_mode()
    def _seen(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """[H, W, 3] -> [L, D] float32."""
        weight = self._vision.pos_embed
        grid = Grid(pixels.shape[0] // self._patch, pixels.shape[1] // self._patch)
        patches = to_patches(to_planes(pixels), self._patch).to(weight.device, weight.dtype)
        return torch.as_tensor(self._vision(patches, grid).float())


def load_eyes(checkpoint: Path, device: torch.device) -> VisionEncoderStage:
    """Return a checkpoint's vision transformer.

    Raises:
        ConfigError: weights are missing or of another shape.
    """
    config = load_config(checkpoint)
    return VisionEncoderStage(
        load_vision(checkpoint, config, device, dtype_on(device)), config.vision.patch
    )
