"""What the request builder gives the talker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """One sentence, and how to say it."""

    phones: NDArray[np.int64]
    """[N] ids."""
    word_starts: NDArray[np.bool_]
    """[N]"""
    question: bool
    speaker: int | NDArray[np.float32]
    """The index of a stock voice, or a speaker's vector [F]."""
    speed: float
    distinct: bool
    """Said distinctly, to be understood when played faster."""
    sampling: SamplingOptions
