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
    # WHY not np.clip and np.nan_to_num: for a chunk of 80 ms, they take twice as long.
    scaled = samples * np.float32(_FULL_SCALE)
    np.maximum(scaled, -_FULL_SCALE, out=scaled)
    np.minimum(scaled, _FULL_SCALE, out=scaled)
    np.rint(scaled, out=scaled)
    invalid = np.isnan(scaled)
    if invalid.any():
        scaled[invalid] = 0.0
    return scaled.astype("<i2")


def to_float(samples: NDArray[np.int16]) -> NDArray[np.float32]:
    """The samples that `to_s16` makes these of."""
    return samples.astype(np.float32) / np.float32(_FULL_SCALE)


def encode_s16le(samples: NDArray[np.float32]) -> bytes:
    """Convert [N, C] samples to interleaved s16le."""
    return to_s16(samples).tobytes()
