"""When words are heard, from the durations of their phones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import WordTiming


def time_words(
    words: NDArray[np.int64], durations: NDArray[np.int64] | NDArray[np.float32], frame_s: float
) -> tuple[WordTiming, ...]:
    """When each word is heard.

    Args:
        words: [W, 2] phones [start, end) of each.
        durations: [T] frames of each phone.
        frame_s: seconds of a frame.
    """
    ends = np.concatenate([[0.0], np.cumsum(durations, dtype=np.float64)]) * frame_s
    return tuple(
        WordTiming(index, float(ends[start]), float(ends[end]))
        for index, (start, end) in enumerate(words)
    )
