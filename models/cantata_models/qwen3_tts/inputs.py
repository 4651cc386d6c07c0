"""What the request builder gives the stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata_models.qwen3_tts.prompt import SpokenText


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """A recording of the speaker to follow."""

    samples: NDArray[np.float32]
    """[N] mono at 24 kHz."""
    frames: bool
    """Encode frames too, so that the talker can continue the recording."""


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """What to say, and how."""

    spoken: SpokenText
    language: int | None
    """The language's code; None lets the model detect it."""
    speaker: int | None
    """The voice's code."""
    follows_recording: bool
    """The speaker's vector, and frames if any, come from the encoder."""
    streamed: bool
    """Add the text to the frames, one token per frame."""
    max_frames: int | None
    """None for the checkpoint's default."""
    sampling: SamplingOptions


@dataclass(frozen=True, slots=True)
class LaterText:
    """Text that arrived after its request started, as tokens."""

    body: tuple[int, ...]
    complete: bool
    """Nothing follows."""
