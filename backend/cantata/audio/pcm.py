"""Float samples to the bytes that clients play, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BYTES_PER_SAMPLE = 2
FORMAT = "pcm_s16le"
"""Signed 16 bit, little endian, channels interleaved."""

_FULL_SCALE = 32767.0


def to_s16(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Round to the nearest 16 bit value; what is out of -1..1 is clipped, never wrapped.

    Not-a-number becomes silence: a cast would turn it into the loudest possible click.
    """
    scaled = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0) * np.float32(_FULL_SCALE)
    return np.rint(np.clip(scaled, -_FULL_SCALE, _FULL_SCALE)).astype("<i2")


def encode_s16le(samples: NDArray[np.float32]) -> bytes:
    """[N] or [N, C] samples as interleaved s16le."""
    return to_s16(samples).tobytes()


def decode_s16le(data: bytes, channels: int = 1) -> NDArray[np.float32]:
    """Interleaved s16le as [N] (mono) or [N, C] samples in -1..1."""
    samples = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(_FULL_SCALE)
    return samples if channels == 1 else samples.reshape(-1, channels)
