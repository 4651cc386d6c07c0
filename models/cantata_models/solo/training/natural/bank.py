"""All generated speech in memory, with its pitch at the ends of hops, and crops of it.

Letters: B rows, T frames of 80 ms, H hops of 10 ms, F values of pitch, N samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_models.solo.networks.filter_decoder import MIDDLE_LOG2_HZ
from cantata_models.solo.networks.source_filter import HOP
from cantata_models.solo.training.natural.shards import (
    PITCH_HOP,
    RATE_HZ,
    UNVOICED_HZ,
    AnnotatedSpeech,
    Samples,
    read_shard,
)

INT16_SCALE = 32768.0
HOPS_PER_FRAME = 8
FRAME = HOPS_PER_FRAME * HOP

Floats = npt.NDArray[np.float32]


def draw_pitch(pitch: Floats, hops: int) -> tuple[Floats, Floats]:
    """The pitch at the ends of hops.

    Args:
        pitch: [F] Hz, each for the middle of its 12.5 ms.
        hops: H.

    Returns:
        [H] log2 Hz, on lines between voiced values, and [H] voicing, 0 or 1.
    """
    ends = np.arange(1, hops + 1) * HOP
    voiced = np.flatnonzero(pitch >= UNVOICED_HZ)
    nearest = np.minimum((ends - 1) // PITCH_HOP, len(pitch) - 1)
    voicing = (pitch[nearest] >= UNVOICED_HZ).astype(np.float32)
    if len(voiced) == 0:
        return np.full(hops, MIDDLE_LOG2_HZ, np.float32), voicing
    middles = (voiced + 0.5) * PITCH_HOP
    return np.interp(ends, middles, np.log2(pitch[voiced])).astype(np.float32), voicing


@dataclass(frozen=True, slots=True)
class PitchedClip:
    """One utterance in whole frames."""

    voice: str
    samples: Samples
    """[T * FRAME], silence at the end."""
    log2_hz: Floats
    """[8 * T]."""
    voicing: Floats
    """[8 * T]."""

    @property
    def frames(self) -> int:
        """T."""
        return len(self.samples) // FRAME


def make_clip(spoken: AnnotatedSpeech) -> PitchedClip:
    """Pads an utterance to whole frames."""
    samples = np.pad(spoken.samples, (0, -len(spoken.samples) % FRAME))
    log2_hz, voicing = draw_pitch(spoken.pitch, len(samples) // HOP)
    voicing[len(spoken.samples) // HOP :] = 0
    return PitchedClip(spoken.voice, samples, log2_hz, voicing)


@dataclass(frozen=True, slots=True)
class PitchedSound:
    """What the codec's encoder gets."""

    samples: torch.Tensor
    """[B, N] float32."""
    log2_hz: torch.Tensor
    """[B, H] float32."""
    voicing: torch.Tensor
    """[B, H] float32."""


def to_sound(clip: PitchedClip, first: int = 0, last: int | None = None) -> PitchedSound:
    """Frames `first` to `last`, which is not among them, as a batch of one."""
    end = clip.frames if last is None else last
    hops = slice(first * HOPS_PER_FRAME, end * HOPS_PER_FRAME)
    samples = clip.samples[first * FRAME : end * FRAME].astype(np.float32) / INT16_SCALE
    return PitchedSound(
        torch.from_numpy(samples)[None],
        torch.from_numpy(clip.log2_hz[hops])[None],
        torch.from_numpy(clip.voicing[hops])[None],
    )


class SpeechBank:
    """The shards of a folder; `refresh` adds those that came since.

    Args:
        folder: with `.npz` shards.
        frames: of a crop; shorter utterances are left out.
    """

    def __init__(self, folder: Path, frames: int) -> None:
        self._folder, self._frames = folder, frames
        self._read = set[str]()
        self._clips = list[PitchedClip]()
        self._weights: npt.NDArray[np.float64] = np.zeros(0)

    @property
    def seconds(self) -> dict[str, float]:
        """Of sound, for each voice."""
        found: dict[str, float] = {}
        for clip in self._clips:
            found[clip.voice] = found.get(clip.voice, 0.0) + len(clip.samples) / RATE_HZ
        return found

    def refresh(self) -> None:
        """Reads the new shards.

        Raises:
            FileNotFoundError: there is none in the folder.
        """
        for path in sorted(self._folder.glob("*.npz")):
            if path.name not in self._read:
                self._read.add(path.name)
                clips = (make_clip(spoken) for spoken in read_shard(path))
                self._clips += [clip for clip in clips if clip.frames >= self._frames]
        if not self._clips:
            raise FileNotFoundError(f"{self._folder} has no speech; run the stage `speech` first")
        # WHY the root: a voice with a hundred times the sound is not a hundred times as difficult.
        seconds = self.seconds
        weights = [clip.frames / math.sqrt(seconds[clip.voice]) for clip in self._clips]
        self._weights = np.array(weights) / sum(weights)

    def draw(self, rng: np.random.Generator, rows: int) -> PitchedSound:
        """Crops from random places: [rows, frames * FRAME]."""
        parts = []
        for index in rng.choice(len(self._clips), rows, p=self._weights):
            clip = self._clips[index]
            first = int(rng.integers(clip.frames - self._frames + 1))
            parts.append(to_sound(clip, first, first + self._frames))
        return PitchedSound(
            torch.cat([part.samples for part in parts]),
            torch.cat([part.log2_hz for part in parts]),
            torch.cat([part.voicing for part in parts]),
        )
