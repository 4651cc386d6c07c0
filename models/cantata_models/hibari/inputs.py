"""What the voice's stage gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class HibariInput:
    """One sentence, or a part of a very long one."""

    voice: str
    phones: NDArray[np.int64]
    """[T] ids of the model's vocabulary, with the padding at both ends."""
    words: NDArray[np.int64]
    """[W, 2]: for each word of the request, its phones [start, end)."""
    speed: float
    """1 is the voice's own pace; 0.5 to 2."""
    seed: int
    """Of the noise in consonants and breath."""
    begins: bool
    """It is the first of its text: the silence before it is only a delay."""
