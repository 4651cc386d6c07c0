"""Stage latents: the talker's training data, one example per aligned utterance."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from cantata_layers.training.progress import tracked
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantizer
from cantata_models.solo.networks.text_track import SLOTS_PER_FRAME
from cantata_models.solo.training.align import Alignment
from cantata_models.solo.training.crops import INT16_SCALE, read_int16
from cantata_models.solo.training.speaker_vectors import SpeakerVectors
from cantata_models.solo.training.speakers import SPEAKERS

logger = logging.getLogger(__name__)

ENCODED_TOGETHER = 16
"""Number of utterances of similar length per encoder call."""
SHARE_POWER = 0.5
VALIDATION_EVERY = 50
"""One utterance in this many is kept out of training, to detect over-fitting."""


@dataclass(frozen=True, slots=True)
class Example:
    """One utterance: N phones, T frames."""

    index: int
    """Index of the utterance."""
    speaker: str
    rate: float
    """Relative to the speaker's usual pace."""
    question: bool
    phones: torch.Tensor
    """[N] int64."""
    word_start: torch.Tensor
    """[N] bool."""
    slots: torch.Tensor
    """[N] int64; they sum to 4 * T."""
    latents: torch.Tensor
    """[T, Z] float32, before quantizing."""
    codes: torch.Tensor
    """[T, Q] int64."""

    @property
    def frames(self) -> int:
        """T, the number of frames."""
        return len(self.latents)


def encode_group(
    group: Sequence[Alignment],
    paths: Sequence[Path],
    config: SoloConfig,
    encoder: CodecEncoder,
    quantizer: ResidualQuantizer,
) -> list[Example]:
    """Encodes utterances, padded with silence, and combines the result with their alignments."""
    clips = [read_int16(path, config.codec.samples_per_frame) for path in paths]
    longest = max(len(clip) for clip in clips)
    rows = np.stack([np.pad(clip, (0, longest - len(clip))) for clip in clips])
    latents = encoder(torch.from_numpy(rows.astype(np.float32) / INT16_SCALE))
    examples = []
    for alignment, clip, row in zip(group, clips, latents, strict=True):
        frames = len(clip) // config.codec.samples_per_frame
        if sum(alignment.slots) != SLOTS_PER_FRAME * frames:
            raise ValueError(f"utterance {alignment.index}: slots do not fill {frames} frames")
        examples.append(
            Example(
                index=alignment.index,
                speaker=alignment.speaker,
                rate=alignment.rate,
                question=alignment.question,
                phones=torch.tensor(alignment.phones),
                word_start=torch.tensor(alignment.word_start),
                slots=torch.tensor(alignment.slots),
                latents=row[:frames].clone(),
                codes=quantizer.encode(row[:frames]),
            )
        )
    return examples


@torch.no_grad()
def make_examples(
    alignments: Sequence[Alignment],
    folder: Path,
    config: SoloConfig,
    encoder: CodecEncoder,
    quantizer: ResidualQuantizer,
    cache: Path,
) -> list[Example]:
    """Returns one example per alignment. `cache` keeps them and grows with the alignments."""
    known: dict[int, Example] = torch.load(cache, weights_only=False) if cache.exists() else {}
    missing = [item for item in alignments if item.index not in known]
    missing.sort(key=lambda item: sum(item.slots))
    groups = [missing[i : i + ENCODED_TOGETHER] for i in range(0, len(missing), ENCODED_TOGETHER)]
    for group in tracked(groups, len(groups), "latents"):
        paths = [folder / f"{item.index:06d}.{item.speaker}.wav" for item in group]
        for example in encode_group(group, paths, config, encoder, quantizer):
            known[example.index] = example
    if missing:
        torch.save(known, cache)
    return list(known.values())


def voice_group(speaker: str) -> str:
    """Returns a stock voice's own name, or the one name shared by all pseudo-speakers."""
    return speaker if SPEAKERS[speaker].stock else "pseudo"


def split(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Returns the training and the validation examples."""
    train = [item for item in examples if item.index % VALIDATION_EVERY]
    return train, [item for item in examples if item.index % VALIDATION_EVERY == 0]


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded examples. B rows, N phones, T frames."""

    phones: torch.Tensor
    """[B, N] int64."""
    word_start: torch.Tensor
    """[B, N] bool."""
    slots: torch.Tensor
    """[B, N] int64, zero beyond an example's end."""
    question: torch.Tensor
    """[B] bool."""
    speaker: torch.Tensor
    """[B, F] float32 speaker vectors."""
    rate: torch.Tensor
    """[B] float32."""
    latents: torch.Tensor
    """[B, T, Z] float32."""
    codes: torch.Tensor
    """[B, T, Q] int64."""
    frames: torch.Tensor
    """[B] int64."""

    def phone_mask(self) -> torch.Tensor:
        """[B, N, 1] float32: one for every phone, including a SIL of zero length."""
        return (self.phones >= 0).float().unsqueeze(-1)

    def frame_mask(self) -> torch.Tensor:
        """[B, T, 1] float32."""
        steps = torch.arange(self.latents.shape[1], device=self.frames.device)
        return (steps[None] < self.frames[:, None]).float().unsqueeze(-1)


def collate(examples: Sequence[Example], speakers: SpeakerVectors, device: str) -> Batch:
    """Pads examples to the longest: phones with -1, the rest with zero. Draws speaker vectors."""
    phones = max(len(item.phones) for item in examples)
    frames = max(item.frames for item in examples)

    def pad(rows: list[torch.Tensor], length: int, value: int = 0) -> torch.Tensor:
        padded = [
            functional.pad(row, (0, 0) * (row.ndim - 1) + (0, length - len(row)), value=value)
            for row in rows
        ]
        return torch.stack(padded).to(device)

    return Batch(
        phones=pad([item.phones for item in examples], phones, -1),
        word_start=pad([item.word_start for item in examples], phones),
        slots=pad([item.slots for item in examples], phones),
        question=torch.tensor([item.question for item in examples], device=device),
        speaker=torch.stack([speakers.draw(item.speaker) for item in examples]).to(device),
        rate=torch.tensor([item.rate for item in examples], device=device),
        latents=pad([item.latents for item in examples], frames),
        codes=pad([item.codes for item in examples], frames),
        frames=torch.tensor([item.frames for item in examples], device=device),
    )


class BatchMaker:
    """Draws batches of examples of similar length, all with about the same number of frames.

    A voice with few examples is oversampled, like a rare language in multilingual training (Conneau
    et al. 2020): a voice's share is proportional to its number of examples to the `SHARE_POWER`.
    """

    def __init__(self, examples: Sequence[Example], frames: int, seed: int) -> None:
        self._examples = sorted(examples, key=lambda item: item.frames)
        self._frames = frames
        self._rng = np.random.default_rng(seed)
        groups = [voice_group(item.speaker) for item in self._examples]
        counts = Counter(groups)
        weights = np.array([counts[group] ** (SHARE_POWER - 1) for group in groups])
        self._weights = weights / weights.sum()

    def draw(self) -> list[Example]:
        """Returns the examples of one batch: a random example and its neighbours in length."""
        # Weighted by frames, so that a second of audio counts the same in long and short sentences.
        first = int(self._rng.choice(len(self._examples), p=self._weights))
        count = max(4, self._frames // self._examples[first].frames)
        window = 4 * count
        low = max(0, min(first - window // 2, len(self._examples) - window))
        high = min(len(self._examples), low + window)
        near = self._weights[low:high] / self._weights[low:high].sum()
        size = min(count, high - low)
        picks = self._rng.choice(np.arange(low, high), size, replace=False, p=near)
        return [self._examples[i] for i in picks]
