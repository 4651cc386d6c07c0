"""What a mark is: which band is louder, and which softer, in which slot of time.

A spread-spectrum mark in log energies: 30 bands of 64 slots get 1.75 dB more or less, by a sign
that follows from the key. Being a factor, it is as loud as the speech in its band, which masks it,
and silence stays silence. Codecs keep such energies, whatever they do to phases.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.errors import ConfigError

Signs = NDArray[np.float64]
"""[slots, bands] of -1 and 1."""

_MIN_KEY_BYTES = 16
PUBLIC_KEY = b"cantata"
"""Of marks that anybody may find, and thus remove."""
SLOT_S = 0.048
"""Long enough to hold a band's energy, short enough to hide in the speech's own changes."""
SLOTS = 64
"""After these, 3.07 s, the pattern begins again."""
DECIBELS = 1.75
_BANDS, _MIN_HZ, _MAX_HZ = 30, 400.0, 7_200.0
"""Where telephones, 16 kHz and codecs at low bit rates leave speech alone."""


@cache
def compute_band_edges() -> NDArray[np.float64]:
    """Edges of the bands in Hz, equally far from each other in mel: [bands + 1]."""
    low, high = (2595 * np.log10(1 + hz / 700) for hz in (_MIN_HZ, _MAX_HZ))
    edges: NDArray[np.float64] = 700 * (10 ** (np.linspace(low, high, _BANDS + 1) / 2595) - 1)
    return edges


def read_key(path: Path | None) -> bytes:
    """The key in a file, at least 16 bytes without white space around them; None: the public one.
    Raises ConfigError: it cannot be read or is shorter."""
    if path is None:
        return PUBLIC_KEY
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(key) < _MIN_KEY_BYTES:
        raise ConfigError(f"{path}: a key has {_MIN_KEY_BYTES} bytes or more")
    return key


def draw_signs(key: bytes) -> Signs:
    seed = int.from_bytes(hashlib.sha256(key).digest(), "little")
    bits = np.random.Generator(np.random.PCG64(seed)).integers(0, 2, (SLOTS, _BANDS))
    return 2.0 * bits.astype(np.float64) - 1.0
