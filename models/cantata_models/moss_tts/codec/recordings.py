"""Prepares recordings for the encoder as the models' own programs do.

Letters: N samples, C channels.
"""

from __future__ import annotations

import numpy as np
import soxr
from numpy.typing import NDArray

LEVEL_DB = -20.0
"""Level that Local expects, relative to full scale."""
MAX_GAIN_DB = 3.0
POWER_FLOOR = 1e-9


def to_stereo(
    samples: NDArray[np.float32], sample_rate: int, wanted_rate: int
) -> NDArray[np.float32]:
    """Resample a recording and give it two channels: one is doubled, of more two are kept.

    Args:
        samples: [N, C].
        sample_rate: Hz, of the recording.
        wanted_rate: Hz.

    Returns:
        [N * wanted_rate / sample_rate, 2].
    """
    stereo = np.repeat(samples, 2, axis=1) if samples.shape[1] == 1 else samples[:, :2]
    if sample_rate != wanted_rate:
        stereo = soxr.resample(stereo, sample_rate, wanted_rate)
    return np.ascontiguousarray(stereo, np.float32)


def levelled(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring a recording [N, C] closer to `LEVEL_DB`, by at most `MAX_GAIN_DB`. Local needs it."""
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    wanted = LEVEL_DB - 10.0 * np.log10(power + POWER_FLOOR)
    gain = np.clip(wanted, -MAX_GAIN_DB, MAX_GAIN_DB)
    return np.asarray(samples * np.float32(10.0 ** (gain / 20.0)), np.float32)
