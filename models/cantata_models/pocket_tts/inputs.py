"""What the request builder gives the stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions

FRAME_COLUMNS = 1
"""Of a frame, behind its latent: how long ago the text ended, which only the talker reads."""


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """A recording of a speaker."""

    samples: NDArray[np.float32]
    """[N] mono."""
    sample_rate: int
    """Hz, the recording's own."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """What to say, and how."""

    text: tuple[int, ...]
    """Tokens of one piece."""
    voice: str | None
    """A voice of the checkpoint's; None: that of a recording."""
    max_frames: int
    frames_after_eos: int
    """Frames that follow the one that ends the text, which counts."""
    eos_threshold: float
    """The score above which a frame ends the text."""
    temperature: float
    """Variance of the noise."""
    noise_clamp: float
    """No number of the noise is further from 0; 0: no bound."""
    steps: int
    """Of the head, for each frame."""
    sampling: SamplingOptions
    """Its seed alone matters."""
