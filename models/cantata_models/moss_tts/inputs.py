"""What the request builders give the stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata_models.moss_tts.prompt import MossPrompt


@dataclass(frozen=True, slots=True)
class MossEncoderInput:
    """A recording to imitate or to continue, as it was sent."""

    samples: NDArray[np.float32]
    """[N, C]"""
    sample_rate: int
    """Hz"""


@dataclass(frozen=True, slots=True)
class MossTalkerInput:
    """What to say, and how."""

    prompt: MossPrompt
    """The frames for its gap, if it has one, come from the encoder."""
    continues: bool
    """The recording is continued: its frames prime the decoder."""
    max_frames: int | None
    """None for the published program's limit."""
    sampling: SamplingOptions
