"""Tells pictures apart, for results that are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def picture_key(pictures: Iterable[NDArray[np.uint8]], beside: str = "") -> bytes:
    """Hash of the pixels, [H, W, 3] each, and of what else a result depends on."""
    output = hashlib.sha256(beside.encode())
    for pixels in pictures:
        output.update(f"{pixels.shape}".encode())
        output.update(np.ascontiguousarray(pixels).tobytes())
    return output.digest()
