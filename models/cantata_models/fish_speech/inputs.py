"""What the request builder gives the stages.

Letters: N samples, T frames, Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """The recordings of the speakers to follow."""

    recordings: tuple[NDArray[np.float32], ...]
    """[N] each, mono at 44.1 kHz."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where a recording's frames stand in a prompt."""

    at: int
    """In front of which token."""
    frames: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """Turns that were spoken earlier in the conversation."""

    tokens: tuple[int, ...]
    """Of their text, up to the sound."""
    codes: NDArray[np.int32]
    """[T, Q]: what was said."""
    end: tuple[int, ...]
    """Tokens behind it."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """A prompt, and how it is spoken."""

    tokens: tuple[int, ...]
    """Of the prompt, less what stands at the places below."""
    recordings: tuple[Recorded, ...]
    """In the order of the tokens."""
    max_frames: int | None
    """None: the published default, as far as there is room."""
    sampling: SamplingOptions
    spoken: tuple[Spoken, ...] = ()
    """The earliest first; the talker leaves out the first ones where there is no room."""
    spoken_at: int = 0
    """In front of which token they stand, behind all recordings."""
