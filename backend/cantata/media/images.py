"""Decodes pictures to pixels. This blocks: call it through `MediaLoader.decode`."""

from __future__ import annotations

import io
import math
import struct
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidImage

if TYPE_CHECKING:
    from PIL import Image

Pixels = NDArray[np.uint8]

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
"""The only readers of Pillow that are tried. Of an animation, the first frame is read."""
MAX_DECODED_PIXELS = 50_000_000
"""Most pixels of a picture; larger ones are rejected before they are decoded."""
_WHITE = (255, 255, 255)
_VALID = "PNG, JPEG, WebP, GIF"


def read_image(data: bytes, max_pixels: int, param: str) -> Pixels:
    """The picture in a whole file.

    Args:
        data: the file, in one of `FORMATS`.
        max_pixels: a larger picture is scaled down to about this area.
        param: the field that it came in, for error messages.

    Returns:
        [H, W, 3] RGB, upright (EXIF), what is transparent over white.

    Raises:
        InvalidImage: not a picture, damaged, or more pixels than may be decoded.
    """
    from PIL import Image

    try:
        # Pillow warns of large pictures; they are rejected here, with or without its warning.
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _check_size(image.width, image.height, param)
            return _decode(image, max_pixels)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise _too_large(param) from None
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, MemoryError) as error:
        raise InvalidImage(f"{param} is not a readable picture; valid: {_VALID}", param) from (
            error
        )


def fitting(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """The size of a picture scaled down to about this many pixels, with the same shape."""
    scale = min(1.0, math.sqrt(max_pixels / (width * height)))
    return max(1, round(width * scale)), max(1, round(height * scale))


def _check_size(width: int, height: int, param: str) -> None:
    if width * height > MAX_DECODED_PIXELS:
        raise _too_large(param, f" of {width} x {height} pixels")


def _too_large(param: str, size: str = "") -> InvalidImage:
    return InvalidImage(
        f"{param} is a picture{size} too large to be decoded; valid: up to "
        f"{MAX_DECODED_PIXELS // 1_000_000} million pixels",
        param,
    )


def _decode(image: Image.Image, max_pixels: int) -> Pixels:
    from PIL import Image, ImageOps

    size = fitting(image.width, image.height, max_pixels)
    # JPEG can be decoded at an eighth, a quarter or half of its size.
    image.draft("RGB", size)
    image.load()
    plain = _with_plain_mode(image)
    if size != plain.size:
        plain = plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
    upright = ImageOps.exif_transpose(plain)
    if upright.mode == "RGBA":
        white = Image.new("RGBA", upright.size, (*_WHITE, 255))
        upright = Image.alpha_composite(white, upright)
    return np.asarray(upright.convert("RGB")).copy()


def _with_plain_mode(image: Image.Image) -> Image.Image:
    """Convert to RGB, or to RGBA if some of the picture is transparent."""
    from PIL import Image

    if image.mode.startswith("I"):
        # 16 bits of grey; Pillow would clip them.
        grey = np.clip(np.asarray(image) // 256, 0, 255).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")
