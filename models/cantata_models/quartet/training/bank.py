"""All of the teacher's speech in memory, and batches of crops of it.

Letters: B rows, T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_models.quartet.network import FRAMES_PER_COUNT
from cantata_models.quartet.training.shards import (
    PITCH_HOP,
    AnnotatedSpeech,
    read_shard,
)

INT16_SCALE = 32767.0


@dataclass(frozen=True, slots=True)
class PhoneBatch:
    """Whole utterances without their sound."""

    voices: torch.Tensor
    """[B] int64."""
    phones: torch.Tensor
    """[B, T] int64."""
    mask: torch.Tensor
    """[B, 1, 1, T] bool; False is padding."""
    durations: torch.Tensor
    """[B, T] int64 frames of 25 ms; 0 for padding."""


@dataclass(frozen=True, slots=True)
class CropBatch:
    """The same utterances, and as many frames of each."""

    whole: PhoneBatch
    places: torch.Tensor
    """[B, F] int64: the phone of each frame."""
    pitch: torch.Tensor
    """[B, F] Hz."""
    energy: torch.Tensor
    """[B, F]."""
    samples: torch.Tensor
    """[B, N] float32."""


class SpeechBank:
    """The shards of a folder; `refresh` adds those that came since.

    Args:
        folder: with `.npz` shards.
        voices: their names; a voice's number is its place.
        frames: of a crop, even; shorter utterances are left out.
    """

    def __init__(self, folder: Path, voices: Sequence[str], frames: int) -> None:
        self._folder, self._voices, self._frames = folder, tuple(voices), frames
        self._read = set[str]()
        self._spoken: list[list[AnnotatedSpeech]] = [[] for _ in voices]

    @property
    def minutes(self) -> dict[str, float]:
        """Of sound, for each voice."""
        return {
            name: round(sum(one.seconds for one in spoken) / 60, 1)
            for name, spoken in zip(self._voices, self._spoken, strict=True)
        }

    def refresh(self) -> None:
        """Reads the new shards.

        Raises:
            FileNotFoundError: a voice has no speech in the folder.
        """
        for path in sorted(self._folder.glob("*.npz")):
            if path.name in self._read:
                continue
            self._read.add(path.name)
            for one in read_shard(path):
                if len(one.pitch) >= self._frames:
                    self._spoken[self._voices.index(one.voice)].append(one)
        if not all(self._spoken):
            raise FileNotFoundError(f"{self._folder} lacks speech; run the stage `speech` first")

    def draw(self, rng: np.random.Generator, rows: int) -> CropBatch:
        """Crops from random places, of the voices in turn."""
        spoken, chosen = self.draw_whole(rng, rows)
        parts = [self._crop(one, rng) for one in spoken]
        places, pitch, energy, samples = (
            torch.from_numpy(np.stack(values)) for values in zip(*parts, strict=True)
        )
        return CropBatch(stack_phones(spoken, chosen), places, pitch, energy, samples)

    def draw_whole(
        self, rng: np.random.Generator, rows: int
    ) -> tuple[list[AnnotatedSpeech], list[int]]:
        """Utterances of the voices in turn, and their voices."""
        chosen = [row % len(self._voices) for row in range(rows)]
        spoken = [self._spoken[voice][rng.integers(len(self._spoken[voice]))] for voice in chosen]
        return spoken, chosen

    def _crop(
        self, one: AnnotatedSpeech, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.generic], ...]:
        counts = one.durations.astype(np.int64) * FRAMES_PER_COUNT
        places = np.repeat(np.arange(len(counts)), counts)
        counted = (len(places) - self._frames) // FRAMES_PER_COUNT
        first = int(rng.integers(counted + 1)) * FRAMES_PER_COUNT
        kept = slice(first, first + self._frames)
        heard = one.samples[first * PITCH_HOP : (first + self._frames) * PITCH_HOP]
        samples = heard.astype(np.float32) / INT16_SCALE
        return places[kept], one.pitch[kept], one.energy[kept], samples


def stack_phones(spoken: Sequence[AnnotatedSpeech], voices: Sequence[int]) -> PhoneBatch:
    """Utterances of any length as one batch."""
    length = max(len(one.phones) for one in spoken)
    phones, durations = np.zeros((2, len(spoken), length), np.int64)
    for row, one in enumerate(spoken):
        phones[row, : len(one.phones)] = one.phones
        durations[row, : len(one.phones)] = one.durations
    known = torch.from_numpy(durations)
    mask = (known > 0)[:, None, None]  # the teacher gives each phone a frame at least
    return PhoneBatch(torch.tensor(voices), torch.from_numpy(phones), mask, known)
