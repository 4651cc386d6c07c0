"""The bare samples of a chapter, as they are kept until its job has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.jobs.job import SoundShape

_BLOCK_SAMPLES = 1 << 16

Pcm16 = NDArray[np.int16]
"""[N, C] samples."""


def read_sound(path: Path, shape: SoundShape) -> Iterator[Pcm16]:
    """The samples of a chapter, block by block; none if nothing of it was spoken."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while data := file.read(_BLOCK_SAMPLES * shape.channels * 2):
            yield np.frombuffer(data, "<i2").reshape(-1, shape.channels)
