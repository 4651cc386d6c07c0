"""How large pictures are that stand in a context.

Source: `MaxLongEdgeMinShortEdgeResize` in the publisher's data/transforms.py.

Letters: H height, W width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.qwen_image.grid import Grid
from cantata_layers.qwen_image.text.pictures import MAX_UNEQUAL, Size, get_size

MAX_PIXELS = 14 * 14 * 9 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds on a picture's sides, in pixels."""

    longest: int
    """The longer side is at most this."""
    shortest: int
    """The shorter side is at least this, unless the longer one would be too long."""
    unit: int
    """Both sides are multiples of this."""

    def fit(self, size: Size) -> Size:
        """The size to which a picture is resized. Raises InvalidRequest: it is too narrow."""
        if max(size.width, size.height) > MAX_UNEQUAL * min(size.width, size.height):
            raise InvalidRequest(
                f"image: {size.width}x{size.height} is too narrow; one side may be "
                f"{MAX_UNEQUAL} times the other",
                "image",
            )
        scale = min(self.longest / max(size.width, size.height), 1.0)
        scale = max(scale, self.shortest / min(size.width, size.height))
        output = self._scale_size(size, scale)
        if output.width * output.height > MAX_PIXELS:
            output = self._scale_size(output, MAX_PIXELS / (output.width * output.height))
        if (side := max(output.width, output.height)) > self.longest:
            output = self._scale_size(output, self.longest / side)
        return output

    def grid(self, pixels: NDArray[np.uint8]) -> Grid:
        """Units of a fitting picture [H, W, 3]."""
        return Grid(pixels.shape[0] // self.unit, pixels.shape[1] // self.unit)

    def _scale_size(self, size: Size, scale: float) -> Size:
        sides = (round(size.width * scale), round(size.height * scale))
        units = (max(1, round(side / self.unit)) for side in sides)
        width, height = (unit * self.unit for unit in units)
        return Size(width, height)


@dataclass(frozen=True, slots=True)
class PictureSizes:
    """Bounds on the sizes of pictures in a context."""

    kept: Bounds
    """As latents; of the result, too, unless a request asks for another size."""
    seen: Bounds
    """By the vision transformer."""


PUBLISHED = PictureSizes(Bounds(1024, 512, 16), Bounds(980, 224, 14))


def fitted(pixels: NDArray[np.uint8], bounds: Bounds) -> NDArray[np.uint8]:
    """[H, W, 3] -> the same of a fitting size, by a bicubic filter. Raises InvalidRequest: as
    `Bounds.fit`."""
    size = bounds.fit(get_size(pixels))
    if size == get_size(pixels):
        return pixels
    image = Image.fromarray(pixels).resize((size.width, size.height), Image.Resampling.BICUBIC)
    return np.asarray(image)
