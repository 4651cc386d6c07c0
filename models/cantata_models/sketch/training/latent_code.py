"""The latents: principal components of 8 x 8 pixels, fitted once, before any training.

The encoder and the decoder both learn this code instead of inventing one together. So the picture
network can train from the first minute, and a linear code already gives 26 dB; the decoder, which
sees its surroundings, adds the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from cantata_models.sketch.training.pictures import Pixels

CELL = 8
"""Side in pixels of what one latent describes."""
CHANNELS = 16
BLUNTING = 0.5
"""Share of the components' differences in size that is evened out, as an exponent."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LatentCode:
    """A linear map from `[192]` values of a cell, -1..1, to 16 latents of mean 0."""

    mean: Floats
    """[192]"""
    forward: Floats
    """[192, 16]"""

    def encode(self, pixels: Pixels) -> Floats:
        """Maps `[n, h, w, 3]` uint8 to `[n, 16, h/8, w/8]`."""
        values = (cells(pixels) - self.mean) @ self.forward
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2))

    def save(self, path: Path) -> None:
        """Writes one safetensors file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file({"mean": self.mean, "forward": np.ascontiguousarray(self.forward)}, path)

    @staticmethod
    def load(path: Path) -> LatentCode:
        """Reads what `save` wrote."""
        stored = load_file(path)
        return LatentCode(stored["mean"], stored["forward"])


def cells(pixels: Pixels) -> Floats:
    """Cuts `[n, h, w, 3]` uint8 into cells `[n, h/8, w/8, 192]` of -1..1."""
    n, height, width, _ = pixels.shape
    shape = (n, height // CELL, CELL, width // CELL, CELL, 3)
    cut = pixels.reshape(shape).transpose(0, 1, 3, 2, 4, 5)
    values: Floats = cut.reshape(*cut.shape[:3], -1).astype(np.float32) / 127.5 - 1
    return values


def fit_code(pixels: Pixels) -> LatentCode:
    """Fits the code to `[n, h, w, 3]` uint8.

    Latents of large components keep the square root of their lead, and the mean square of all is
    one: denoising then settles outlines before details.
    """
    values = cells(pixels).reshape(-1, 3 * CELL * CELL)
    mean = values.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov((values - mean).T))
    spread = np.sqrt(variances[::-1][:CHANNELS])
    wanted = spread ** (1 - BLUNTING)
    wanted /= np.sqrt((wanted**2).mean())
    forward = axes[:, ::-1][:, :CHANNELS] * (wanted / spread)
    return LatentCode(mean.astype(np.float32), forward.astype(np.float32))
