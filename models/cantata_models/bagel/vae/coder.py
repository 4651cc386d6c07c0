"""Pictures to latents and back, with a checkpoint's weights.

Letters: Z latent channels, h and w a picture's latents, H and W its pixels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.dtypes import dtype_on
from cantata_layers.weight_map import WeightMap
from cantata_models.bagel.config import AUTOENCODER
from cantata_models.bagel.vae.encoder_decoder import (
    BagelDecoderNetwork,
    BagelEncoderNetwork,
    VaeShape,
)

LEVELS = 255
ENCODER, DECODER = WeightMap({"encoder.{}": "{}"}), WeightMap({"decoder.{}": "{}"})
SCALE, SHIFT = 0.3611, 0.1159
"""Of latents, as `load_ae` of the publisher has them."""


class BagelPictureEncoder:
    """Pictures to latents.

    Raises:
        ConfigError: (on construction) weights are missing or of another shape.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        tensors = _half(checkpoint, ENCODER, device)
        shape = _shape(tensors, "encoder", 0, checkpoint)
        with torch.device("meta"):
            self._network = BagelEncoderNetwork(shape)
        ENCODER.fill(self._network, tensors.items(), checkpoint)
        self._device = device
        self.channels = shape.latents
        """Z."""

    def encode(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w], those of the highest density."""
        return self.sample(pixels, None)

    @torch.inference_mode()
    def sample(self, pixels: NDArray[np.uint8], noise: torch.Tensor | None) -> torch.Tensor:
        """uint8 [H, W, 3] -> float32 [Z, h, w]; H and W are multiples of a latent's pixels.

        Args:
            pixels: of one picture.
            noise: [Z, h, w] of deviation 1, which chooses among the latents that the picture may
                have; None: their mean.
        """
        x = to_planes(pixels)[None].to(self._device, dtype_on(self._device))
        mean, spread = self._network(x)[0].float().chunk(2)
        if noise is not None:
            mean = mean + torch.exp(0.5 * spread) * noise.to(self._device)
        return torch.as_tensor(SCALE * (mean - SHIFT))


class BagelPictureDecoder:
    """Latents to pictures; arguments and errors as `BagelPictureEncoder`."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        tensors = _half(checkpoint, DECODER, device)
        with torch.device("meta"):
            self._network = BagelDecoderNetwork(_shape(tensors, "decoder", 1, checkpoint))
        DECODER.fill(self._network, tensors.items(), checkpoint)
        self._device = device

    @torch.inference_mode()
    def decode(self, latents: torch.Tensor) -> NDArray[np.uint8]:
        """[Z, h, w] -> uint8 [H, W, 3]; the reference cuts off fractions."""
        z = (latents.to(self._device, torch.float32) / SCALE + SHIFT).to(dtype_on(self._device))
        shown = (self._network(z[None])[0].float() * 0.5 + 0.5).clamp(0, 1).permute(1, 2, 0)
        picture: NDArray[np.uint8] = (shown * LEVELS).to(torch.uint8).cpu().numpy()
        return picture


def to_planes(pixels: NDArray[np.uint8]) -> torch.Tensor:
    """uint8 [H, W, 3] -> float32 [3, H, W] of -1 to 1."""
    colours = torch.from_numpy(pixels.astype(np.float32) / LEVELS).permute(2, 0, 1)
    return ((colours - 0.5) / 0.5).contiguous()


def _half(checkpoint: Path, names: WeightMap, device: torch.device) -> dict[str, torch.Tensor]:
    found = names.read(checkpoint, AUTOENCODER)
    return {name: tensor.to(device, dtype_on(device)) for name, tensor in found}


def _shape(tensors: Mapping[str, torch.Tensor], side: str, more: int, checkpoint: Path) -> VaeShape:
    """Read the sizes off the weights. `more`: blocks at a resolution beyond the encoder's."""
    pattern = re.compile(rf"{side}\.(?:down|up)\.(\d+)\.block\.(\d+)\.conv1\.weight")
    found = {
        (int(match[1]), int(match[2])): tensor.shape[0]
        for name, tensor in tensors.items()
        if (match := pattern.fullmatch(name))
    }
    first, last = (tensors.get(f"{side}.conv_{end}.weight") for end in ("in", "out"))
    if not found or first is None or last is None:
        raise ConfigError(f"{checkpoint}: {AUTOENCODER}.safetensors holds no such autoencoder")
    levels, blocks = (max(place[axis] for place in found) + 1 for axis in (0, 1))
    widths = tuple(found.get((level, 0), 0) for level in range(levels))
    latents = first.shape[1] if more else last.shape[0] // 2
    return VaeShape(widths, blocks - more, latents)
