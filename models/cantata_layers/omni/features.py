"""What encoders take: media as features, with the number of rows that they make of them.

Letters: M mel bins, F mel frames, N patches, V values of a patch.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Modality(StrEnum):
    """As vLLM names them."""

    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class Grid:
    """Patches of a picture or video in each direction."""

    time: int
    """Each of as many frames as a patch has."""
    height: int
    width: int

    def rows(self, merge_size: int) -> int:
        """Tokens in a prompt, each of `merge_size` x `merge_size` patches."""
        return self.time * self.height * self.width // merge_size**2


@dataclass(frozen=True, slots=True)
class SoundFeatures:
    """A recording."""

    mels: NDArray[np.float32]
    """[M, F]: log-mel spectrogram as Whisper takes it, 100 frames a second."""
    rows: int
    """Tokens in a prompt."""

    @property
    def identity(self) -> bytes:
        """A hash: equal for equal recordings."""
        return hashlib.sha256(f"{self.mels.shape}".encode() + self.mels.tobytes()).digest()


@dataclass(frozen=True, slots=True)
class VisionFeatures:
    """A picture or a video."""

    modality: Modality
    patches: NDArray[np.float32]
    """[N, V]: those of a row together, its values by colour, frame, line and column."""
    grid: Grid
    merge_size: int
    seconds_per_step: float = 0.0
    """Between two steps of the grid's time; a picture has one."""

    @property
    def identity(self) -> bytes:
        """A hash: equal for equal pixels."""
        return hashlib.sha256(
            f"{self.modality} {self.grid}".encode() + self.patches.tobytes()
        ).digest()

    @property
    def rows(self) -> int:
        """Tokens in a prompt."""
        return self.grid.rows(self.merge_size)


MediaFeatures = SoundFeatures | VisionFeatures


@dataclass(frozen=True, slots=True)
class Film:
    """A video and its sound, whose rows stand among each other."""

    video: VisionFeatures
    sound: SoundFeatures

    @property
    def rows(self) -> int:
        """Tokens in a prompt."""
        return self.video.rows + self.sound.rows
