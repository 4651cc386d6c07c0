"""All of the teacher's speech in memory, and batches of crops of it.

A stock voice is known by its number, any other by the features of another of its recordings.

Letters: B rows, T phones, F frames of 12.5 ms, N samples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from cantata_layers.harmonic_vocoder import make_pulses
from cantata_layers.speaker_features import SPEAKER_SIZE, speaker_vector
from cantata_models.quartet.network import FRAMES_PER_COUNT
from cantata_models.quartet.training.shards import (
    PITCH_HOP,
    RATE_HZ,
    AnnotatedSpeech,
    read_shard,
)

INT16_SCALE = 32767.0
MIN_FOLLOWED = 2
"""Utterances of a voice that is heard: one is said, another tells who says it."""
ASKED_SHARE = 0.55
"""Of the batches of whole utterances. Where questions end is harder to learn than anything else."""
NEAR = 0.05
"""How far a batch's utterances are from one place in their order by length."""
_QUESTION = re.compile(r"[^.!?]*\?")

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SpokenBy:
    """An utterance, and how the network is told who speaks."""

    spoken: AnnotatedSpeech
    voice: int
    """The voice's place among all voices."""
    speaker: int
    """The voice, or -1: who speaks is heard in `features`."""
    features: Floats
    """[SPEAKER_SIZE] of a recording; zeros for a stock voice."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """An utterance, with sound or without."""

    spoken: AnnotatedSpeech
    recording: int
    """Its place among the voice's recordings; -1 if it is none."""


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
    lengths: tuple[int, ...]
    """The frames of 25 ms of each row, which the host would have to read from a GPU."""


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
    pulses: torch.Tensor
    """[B, N] float32: what the vocoder filters, at this pitch."""
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
        self._whole = {asked: [list[_Whole]() for _ in voices] for asked in (False, True)}

    @property
    def voices(self) -> int:
        """The number of voices."""
        return len(self._voices)

    @property
    def minutes(self) -> dict[str, float]:
        """Minutes of sound, of each stock voice and of all others together."""
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
                voice = self._voices.index(one.voice)
                recording = -1
                if len(one.samples) and len(one.pitch) >= self._frames:
                    recording = len(self._spoken[voice])
                    self._spoken[voice].append(one)
                    rng = np.random.default_rng([index, *path.name.encode()])
                    self._features[voice].append(describe_recording(one, rng))
                asked = _QUESTION.fullmatch(one.text) is not None
                self._whole[asked][voice].append(_Whole(one, recording))
        for voices in self._whole.values():
            for whole in voices:
                whole.sort(key=lambda one: len(one.spoken.pitch))
        if not all(self._spoken[: self._stock]):
            raise FileNotFoundError(f"{self._folder} lacks speech; run the stage `speech` first")

    def draw(self, rng: np.random.Generator, rows: int) -> CropBatch:
        """Crops from random places of the stock voices in turn; every second one of a voice that is
        heard."""
        drawn = [self._draw_spoken(rng, *who) for who in self._pick_voices(rng, rows, 2)]
        parts = [self._crop(one.spoken, rng) for one in drawn]
        places, pitch, energy, samples = (np.stack(values) for values in zip(*parts, strict=True))
        pulses = np.stack([make_pulses(row) for row in pitch])
        arrays = (places, pitch, energy, pulses, samples)
        return CropBatch(stack_phones(drawn), *(torch.from_numpy(one) for one in arrays))

    def draw_whole(self, rng: np.random.Generator, rows: int) -> list[SpokenBy]:
        """Utterances of about one length, so that little of a batch is padding, and of one kind:
        `ASKED_SHARE` of the batches are questions. Every fourth row is of a voice that is heard.
        """
        asked, place = bool(rng.random() < ASKED_SHARE), rng.random()
        drawn = list[SpokenBy]()
        for voice, is_heard in self._pick_voices(rng, rows, 4):
            known = self._whole[asked][voice] or self._whole[not asked][voice]
            near = int((place + rng.uniform(-NEAR, NEAR)) * len(known))
            chosen = known[min(max(near, 0), len(known) - 1)]
            drawn.append(self._name(rng, chosen, voice, is_heard))
        return drawn

    def _pick_voices(
        self, rng: np.random.Generator, rows: int, every: int
    ) -> Iterator[tuple[int, bool]]:
        """The stock voices in turn; of so many rows, one is of a voice that is heard."""
        followed = [
            voice for voice, spoken in enumerate(self._spoken) if len(spoken) >= MIN_FOLLOWED
        ]
        turns = cycle(range(self._stock))
        for row in range(rows):
            is_heard = bool(followed) and row % every == every - 1
            yield int(rng.choice(followed)) if is_heard else next(turns), is_heard

    def _draw_spoken(self, rng: np.random.Generator, voice: int, is_heard: bool) -> SpokenBy:
        said = int(rng.integers(len(self._spoken[voice])))
        return self._name(rng, _Whole(self._spoken[voice][said], said), voice, is_heard)

    def _name(
        self, rng: np.random.Generator, whole: _Whole, voice: int, is_heard: bool
    ) -> SpokenBy:
        """Tells who speaks: by number, or by another recording than the one that is said."""
        if not is_heard:
            return SpokenBy(whole.spoken, voice, voice, np.zeros(SPEAKER_SIZE, np.float32))
        others = [n for n in range(len(self._features[voice])) if n != whole.recording]
        variants = self._features[voice][int(rng.choice(others))]
        return SpokenBy(whole.spoken, voice, -1, variants[rng.integers(len(variants))])

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
        lengths=tuple(known.sum(dim=1).tolist()),
    )


TILTS_DB = (-4.0, 4.0)
"""The range of a smooth curve over frequency, at each of `POINTS`."""
POINTS = 6
NOISES_DB = (15.0, 40.0)
"""The range of signal to noise."""
TELEPHONE_SHARE = 0.25
TELEPHONE_HZ = (3400.0, 8000.0)


def degrade(samples: Floats, sample_rate: int, rng: np.random.Generator) -> Floats:
    """[N] -> [N] through another microphone, with noise, at times without the upper band."""
    spectrum = np.fft.rfft(samples)
    hertz = np.linspace(0.0, sample_rate / 2, len(spectrum))
    octaves = np.log2(np.maximum(hertz, 50.0) / 50.0)
    curve = np.interp(
        octaves, np.linspace(0.0, octaves[-1], POINTS), rng.uniform(*TILTS_DB, POINTS)
    )
    spectrum = spectrum * 10 ** (curve / 20)
    level = np.sqrt(np.mean(np.square(samples))) * 10 ** (-rng.uniform(*NOISES_DB) / 20)
    noise = np.fft.rfft(rng.standard_normal(len(samples)) * level)
    if rng.random() < 0.5:  # noise of rooms falls with frequency
        noise = noise / np.sqrt(np.maximum(hertz, 50.0) / 500.0)
    spectrum = spectrum + noise
    if rng.random() < TELEPHONE_SHARE:
        spectrum[hertz > rng.uniform(*TELEPHONE_HZ)] = 0.0
    heard: Floats = np.fft.irfft(spectrum, len(samples)).astype(np.float32)
    return heard
