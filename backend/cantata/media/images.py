"""Decodes picture files to pixels, and encodes them again.

This blocks: call it through `MediaLoader.decode` and `MediaReader.write`.
"""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import InvalidImage
from cantata.media.provenance import make_png_info, write_xmp

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
        raise _build_too_large_error(param) from None
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
        raise _build_too_large_error(param, f" of {width} x {height} pixels")


def _build_too_large_error(param: str, size: str = "") -> InvalidImage:
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
    plain = _convert_mode(image)
    if size != plain.size:
        plain = plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
    upright = ImageOps.exif_transpose(plain)
    if upright.mode == "RGBA":
        white = Image.new("RGBA", upright.size, (*_WHITE, 255))
        upright = Image.alpha_composite(white, upright)
    return np.asarray(upright.convert("RGB")).copy()


def _convert_mode(image: Image.Image) -> Image.Image:
    """Convert to RGB, or to RGBA if some of the picture is transparent."""
    from PIL import Image

    if image.mode.startswith("I"):
        # 16 bits of grey; Pillow would clip them.
        grey = np.clip(np.asarray(image) // 256, 0, 255).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    return image.convert("RGBA" if image.has_transparency_data else "RGB")


PictureFormat = Literal["png", "webp", "jpeg"]

BEST = 100
_PNG_EFFORT = 4
"""zlib's effort, of 9; beyond it, files hardly shrink but take longer."""
_WEBP_EFFORT = 2
"""WebP's effort, of 6; the default takes twice as long."""


@dataclass(frozen=True, slots=True)
class PictureOutput:
    """How a picture is written. Beside the picture, the file has at most one tag."""

    kind: PictureFormat = "png"
    quality: int = BEST
    """Quality of JPEG and WebP, 0 to 100: 100 is the best and the largest."""
    tagged: bool = True
    """The file says that a model made it."""


def write_picture(
    pixels: Pixels, output: PictureOutput, size: tuple[int, int] | None = None
) -> bytes:
    """Encode a picture as a file.

    Args:
        pixels: [H, W, 3] RGB.
        size: width and height in pixels to scale the picture to; None: its own.
    """
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    if size is not None and size != image.size:
        image = image.resize(size, Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, output.kind.upper(), **_build_options(output), **_build_tags(output))
    return file.getvalue()


def _build_options(output: PictureOutput) -> dict[str, Any]:
    match output.kind:
        case "png":
            return {"compress_level": _PNG_EFFORT}
        case "webp":
            return {"quality": output.quality, "method": _WEBP_EFFORT}
        case "jpeg":
            # The best keeps the colour of every pixel, not of every four.
            exact = {"subsampling": 0} if output.quality == BEST else {}
            return {"quality": output.quality, **exact}


def _build_tags(output: PictureOutput) -> dict[str, Any]:
    if not output.tagged:
        return {}
    return {"pnginfo": make_png_info()} if output.kind == "png" else {"xmp": write_xmp()}
