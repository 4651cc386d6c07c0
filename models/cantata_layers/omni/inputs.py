"""What a request builder gives the encoder and the thinker: media as features, with the number of
rows that encoders make of them, and tokens.

Letters: M mel bins, F mel frames, N patches, V values of a patch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions


class MediaModality(StrEnum):
    """Kinds of media, by vLLM's names."""

    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


@dataclass(frozen=True, slots=True)
class PatchGrid:
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

    modality: MediaModality
    patches: NDArray[np.float32]
    """[N, V]: those of a row together, its values by colour, frame, line and column."""
    grid: PatchGrid
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


WINDOW_FRAMES, WINDOW_ROWS = 100, 13
"""Mel frames that the audio encoder's convolutions take at once, and the rows that they make."""


def sound_rows(frames: int) -> int:
    """Rows that the audio encoder makes of so many mel frames: each window by itself, halved three
    times, and rounded up each time."""
    whole, rest = divmod(frames, WINDOW_FRAMES)
    for _ in range(3):
        rest = -(-rest // 2)
    return WINDOW_ROWS * whole + rest


@dataclass(frozen=True, slots=True)
class EncoderInput:
    """The media of a conversation."""

    media: tuple[MediaFeatures, ...]
    """In the order of the prompt; at least one."""


@dataclass(frozen=True, slots=True)
class ThinkerInput:
    """A conversation as tokens."""

    tokens: NDArray[np.int32]
    """[P]"""
    media: NDArray[np.int32]
    """[M]: where the encoders' rows belong, in their order."""
    positions: NDArray[np.float32] | None
    """[3, P]: rotary positions. None: they count on, on the only axis that there is."""
    identities: NDArray[np.int32]
    """[P]: the tokens, but for media numbers that tell different ones apart."""
    max_tokens: int | None
    """Of the answer; None: as many as there is room for."""
    exports_rows: bool
    """Whether the talker needs the thinker's hidden states."""
    sampling: SamplingOptions


def identify_rows(
    tokens: NDArray[np.int32], media: Iterable[tuple[MediaFeatures, NDArray[np.int32]]]
) -> NDArray[np.int32]:
    """[P] tokens -> [P]: the tokens; in the place of media, 31 bits of a stream that their content
    seeds. `media`: each with the places of its rows."""
    identities = tokens.copy()
    for features, places in media:
        stream = hashlib.shake_256(features.identity).digest(4 * len(places))
        identities[places] = (np.frombuffer(stream, np.uint32) >> 1).astype(np.int32)
    return identities
