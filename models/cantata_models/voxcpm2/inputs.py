"""What the request builder gives the stages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions

DEFAULT_STEPS = 10
"""Of the solver, as published."""


class Mode(StrEnum):
    """What a request does with a recording."""

    PLAIN = "plain"
    """There is none."""
    CLONE = "voice_clone"
    """It imitates the speaker."""
    CONTINUATION = "continuation"
    """It goes on speaking where the recording ends."""
    COMBINED = "combined"
    """Both, with the same recording."""

    @property
    def imitates(self) -> bool:
        """Whether the recording stands before the text."""
        return self in (Mode.CLONE, Mode.COMBINED)

    @property
    def continues(self) -> bool:
        """Whether the recording stands behind the text."""
        return self in (Mode.CONTINUATION, Mode.COMBINED)


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """A recording of a speaker."""

    samples: NDArray[np.float32]
    """[N] mono."""
    sample_rate: int
    """Hz, the recording's own."""
    mode: Mode
    """Where its latents are needed; not `PLAIN`."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """What to say, and how."""

    text: tuple[int, ...]
    """Tokens: a transcript that is continued, and the text."""
    mode: Mode
    max_frames: int
    """Patches; fewer if there is no room."""
    steps: int
    """Of the solver, for each patch."""
    guidance: float
    sampling: SamplingOptions
    """Its seed alone matters."""
