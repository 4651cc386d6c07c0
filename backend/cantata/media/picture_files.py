"""Encodes pixels as picture files. This blocks: call it through `MediaReader.write`."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cantata.media.images import Pixels
from cantata.media.provenance import make_png_info, write_xmp

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
        output: its format.
        size: width and height in pixels to scale the picture to; None: its own.
    """
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    if size is not None and size != image.size:
        image = image.resize(size, Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.save(file, output.kind.upper(), **_options(output), **_tags(output))
    return file.getvalue()


def _options(output: PictureOutput) -> dict[str, Any]:
    match output.kind:
        case "png":
            return {"compress_level": _PNG_EFFORT}
        case "webp":
            return {"quality": output.quality, "method": _WEBP_EFFORT}
        case "jpeg":
            # The best keeps the colour of every pixel, not of every four.
            exact = {"subsampling": 0} if output.quality == BEST else {}
            return {"quality": output.quality, **exact}


def _tags(output: PictureOutput) -> dict[str, Any]:
    if not output.tagged:
        return {}
    return {"pnginfo": make_png_info()} if output.kind == "png" else {"xmp": write_xmp()}
