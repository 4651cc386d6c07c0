"""What the request builder gives the stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """A recording of the speaker to follow."""

    samples: NDArray[np.float32]
    """[N] mono at 44.1 kHz."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """A prompt, and how it is spoken."""

    tokens: tuple[int, ...]
    """Of the prompt, less those of a recording's codes."""
    recording_at: int | None
    """In front of which token the recording's frames stand; None: it has none."""
    max_frames: int | None
    """None: the published default, as far as there is room."""
    sampling: SamplingOptions
