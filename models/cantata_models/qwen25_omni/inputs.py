"""What the request builder gives the stages."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


@dataclass(frozen=True, slots=True)
class Qwen25OmniTalkerInput:
    """How to speak an answer. What to say comes from the thinker, as rows."""

    prompt_rows: int
    """P, the thinker's prompt tokens: so many rows come before the answer's."""
    speaker: str
    max_frames: int | None = None
    """None for as many as the reference allows."""
    positions: NDArray[np.float32] | None = None
    """[3, P + 2]: the thinker's rotary positions (time, height, width) of its prompt and of the two
    tokens behind it. None: 0, 1, 2, ... on each axis, as without pictures."""
    sampling: SamplingOptions = field(default_factory=SamplingOptions)


@dataclass(frozen=True, slots=True)
class Token2WavInput:
    """Whose voice it is."""

    speaker: str
    seed: int = 0
    """Of the noise from which the sound is made."""
