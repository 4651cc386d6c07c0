"""All of the teacher's speech in memory, and batches of crops of it.

A stock voice is known by its number, any other by the features of another of its recordings.

Letters: B rows, T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_layers.speaker_features import SPEAKER_SIZE, speaker_vector
from cantata_models.quartet.network import FRAMES_PER_COUNT
from cantata_models.quartet.training.recordings import degrade
from cantata_models.quartet.training.shards import (
    PITCH_HOP,
    RATE_HZ,
    AnnotatedSpeech,
    read_shard,
)

INT16_SCALE = 32767.0
FEWEST_FOLLOWED = 2
"""Utterances of a voice that is heard: one is said, another tells who says it."""

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SpokenBy:
    """An utterance, and how the network is told who speaks."""

    spoken: AnnotatedSpeech
    voice: int
    """Place among all voices."""
    speaker: int
    """The voice, or -1: who speaks is heard in `features`."""
    features: Floats
    """[SPEAKER_SIZE] of a recording; zeros for a stock voice."""


@dataclass(frozen=True, slots=True)
class PhoneBatch:
    """Whole utterances without their sound."""

    voices: torch.Tensor
    """[B] int64."""
    speakers: torch.Tensor
    """[B] int64, as `SpokenBy.speaker`."""
    features: torch.Tensor
    """[B, SPEAKER_SIZE]."""
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
        voices: their names, the stock voices first; a voice's number is its place.
        stock: how many are stock voices.
        frames: of a crop, even; shorter utterances are left out.
    """

    def __init__(self, folder: Path, voices: Sequence[str], stock: int, frames: int) -> None:
        self._folder, self._voices, self._frames = folder, tuple(voices), frames
        self._stock = stock
        self._read = set[str]()
        self._spoken: list[list[AnnotatedSpeech]] = [[] for _ in voices]
        self._features: list[list[Floats]] = [[] for _ in voices]

    @property
    def voices(self) -> int:
        """How many there are."""
        return len(self._voices)

    @property
    def minutes(self) -> dict[str, float]:
        """Of sound, for each stock voice and for all others."""
        lengths = [sum(one.seconds for one in spoken) / 60 for spoken in self._spoken]
        stock = dict(zip(self._voices[: self._stock], lengths, strict=False))
        return {
            name: round(length, 1)
            for name, length in (stock | {"others": sum(lengths[self._stock :])}).items()
        }

    @property
    def features(self) -> Floats:
        """[recordings, SPEAKER_SIZE] of all voices."""
        return np.concatenate([one for voice in self._features for one in voice])

    def refresh(self) -> None:
        """Reads the new shards.

        Raises:
            FileNotFoundError: a stock voice has no speech in the folder.
        """
        for path in sorted(self._folder.glob("*.npz")):
            if path.name in self._read:
                continue
            self._read.add(path.name)
            for index, one in enumerate(read_shard(path)):
                if len(one.pitch) >= self._frames:
                    voice = self._voices.index(one.voice)
                    self._spoken[voice].append(one)
                    rng = np.random.default_rng([index, *path.name.encode()])
                    self._features[voice].append(describe_recording(one, rng))
        if not all(self._spoken[: self._stock]):
            raise FileNotFoundError(f"{self._folder} lacks speech; run the stage `speech` first")

    def draw(self, rng: np.random.Generator, rows: int) -> CropBatch:
        """Crops from random places, as `draw_whole` draws their utterances."""
        drawn = self.draw_whole(rng, rows)
        parts = [self._crop(one.spoken, rng) for one in drawn]
        places, pitch, energy, samples = (
            torch.from_numpy(np.stack(values)) for values in zip(*parts, strict=True)
        )
        return CropBatch(stack_phones(drawn), places, pitch, energy, samples)

    def draw_whole(self, rng: np.random.Generator, rows: int) -> list[SpokenBy]:
        """Utterances of the stock voices in turn; every second one of a voice that is heard."""
        followed = [
            voice for voice, spoken in enumerate(self._spoken) if len(spoken) >= FEWEST_FOLLOWED
        ]
        return [
            self._draw_followed(rng, int(rng.choice(followed)))
            if row % 2 and followed
            else self._draw_stock(rng, row // 2 % self._stock)
            for row in range(rows)
        ]

    def _draw_stock(self, rng: np.random.Generator, voice: int) -> SpokenBy:
        spoken = self._spoken[voice][rng.integers(len(self._spoken[voice]))]
        return SpokenBy(spoken, voice, voice, np.zeros(SPEAKER_SIZE, np.float32))

    def _draw_followed(self, rng: np.random.Generator, voice: int) -> SpokenBy:
        said, heard = rng.choice(len(self._spoken[voice]), 2, replace=False)
        variants = self._features[voice][heard]
        features = variants[rng.integers(len(variants))]
        return SpokenBy(self._spoken[voice][said], voice, -1, features)

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


def describe_recording(spoken: AnnotatedSpeech, rng: np.random.Generator) -> Floats:
    """[3, SPEAKER_SIZE]: the features of an utterance as it is, and of two poor recordings."""
    samples = spoken.samples.astype(np.float32) / INT16_SCALE
    heard = (samples, *(degrade(samples, RATE_HZ, rng) for _ in range(2)))
    return np.stack([speaker_vector(one, RATE_HZ) for one in heard])


def stack_phones(drawn: Sequence[SpokenBy]) -> PhoneBatch:
    """Utterances of any length as one batch."""
    length = max(len(one.spoken.phones) for one in drawn)
    phones, durations = np.zeros((2, len(drawn), length), np.int64)
    for row, one in enumerate(drawn):
        phones[row, : len(one.spoken.phones)] = one.spoken.phones
        durations[row, : len(one.spoken.phones)] = one.spoken.durations
    known = torch.from_numpy(durations)
    return PhoneBatch(
        voices=torch.tensor([one.voice for one in drawn]),
        speakers=torch.tensor([one.speaker for one in drawn]),
        features=torch.from_numpy(np.stack([one.features for one in drawn])),
        phones=torch.from_numpy(phones),
        mask=(known > 0)[:, None, None],  # the teacher gives each phone a frame at least
        durations=known,
    )
