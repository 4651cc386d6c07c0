"""A recording of nobody, for requests that warm the stages up."""

from __future__ import annotations

import numpy as np

from cantata.contract.data.request import ReferenceAudio


def second_of_noise(
    sample_rate: int, channels: int = 1, transcript: str | None = None
) -> ReferenceAudio:
    """Return quiet noise, the same in every call.

    Args:
        sample_rate: Hz.
        transcript: what it is said to be.
    """
    noise = np.random.default_rng(0).normal(0, 0.1, (sample_rate, channels)).astype(np.float32)
    return ReferenceAudio(noise, sample_rate, transcript)
