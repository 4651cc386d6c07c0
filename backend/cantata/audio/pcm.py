"""Converts float samples to the bytes that clients play: signed 16 bit, little endian,
interleaved."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BYTES_PER_SAMPLE = 2

_FULL_SCALE = 32767.0


def to_s16(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Round to the nearest 16 bit value; values beyond -1..1 are clipped, never wrapped.

    Not-a-number becomes silence: a cast would turn it into the loudest possible click.
    """
    scaled = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0) * np.float32(_FULL_SCALE)
    return np.rint(np.clip(scaled, -_FULL_SCALE, _FULL_SCALE)).astype("<i2")


def to_float(samples: NDArray[np.int16]) -> NDArray[np.float32]:
    """The samples that `to_s16` makes these of."""
    return samples.astype(np.float32) / np.float32(_FULL_SCALE)


def encode_s16le(samples: NDArray[np.float32]) -> bytes:
    """Convert [N, C] samples to interleaved s16le."""
    return to_s16(samples).tobytes()
