"""The picture on a book's cover, made anew: what is in its file besides is left behind."""

from __future__ import annotations

import io

MAX_SIDE = 1_400
_MAX_PIXELS = 50_000_000


def redraw_cover(data: bytes) -> bytes:
    """A picture as a JPEG of at most 1,400 pixels a side; empty: it cannot be read."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return b""
            opened.draft("RGB", (MAX_SIDE, MAX_SIDE))
            picture = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return b""
    picture.thumbnail((MAX_SIDE, MAX_SIDE))
    made = io.BytesIO()
    picture.save(made, "JPEG", quality=88)
    return made.getvalue()
