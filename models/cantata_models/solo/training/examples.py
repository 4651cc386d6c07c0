"""Stage latents: what the talker learns from, one example per aligned utterance."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_encoder import CodecEncoder, ResidualQuantiser
from cantata_models.solo.networks.text_track import SLOTS_PER_FRAME
from cantata_models.solo.training.align import Alignment
from cantata_models.solo.training.clips import INT16_SCALE, read_int16
from cantata_models.solo.training.progress import tracked

logger = logging.getLogger(__name__)

VALIDATION_EVERY = 50
"""One utterance in so many is kept out of training, to see over-fitting."""


@dataclass(frozen=True, slots=True)
class Example:
    """One utterance: N phones, T frames."""

    index: int
    """Of the utterance."""
    voice: int
    question: bool
    phones: torch.Tensor
    """[N] int64."""
    word_start: torch.Tensor
    """[N] bool."""
    slots: torch.Tensor
    """[N] int64, the sum is 4 * T."""
    latents: torch.Tensor
    """[T, Z] float32, before quantising."""
    codes: torch.Tensor
    """[T, Q] int64."""

    @property
    def frames(self) -> int:
        """T."""
        return len(self.latents)


def make_example(
    alignment: Alignment,
    path: Path,
    voice: int,
    encoder: CodecEncoder,
    quantiser: ResidualQuantiser,
) -> Example:
    """Encodes one utterance's sound and joins it with its alignment."""
    samples = read_int16(path, encoder.config.samples_per_frame).astype(np.float32) / INT16_SCALE
    latents = encoder(torch.from_numpy(samples)[None])[0]
    slots = torch.tensor(alignment.slots)
    if int(slots.sum()) != SLOTS_PER_FRAME * len(latents):
        raise ValueError(f"{path}: {int(slots.sum())} slots for {len(latents)} frames")
    return Example(
        index=alignment.index,
        voice=voice,
        question=alignment.question,
        phones=torch.tensor(alignment.phones),
        word_start=torch.tensor(alignment.word_start),
        slots=slots,
        latents=latents,
        codes=quantiser.encode(latents),
    )


@torch.no_grad()
def make_examples(
    alignments: Sequence[Alignment],
    folder: Path,
    config: SoloConfig,
    encoder: CodecEncoder,
    quantiser: ResidualQuantiser,
    cache: Path,
) -> list[Example]:
    """Returns one example per alignment; kept in `cache`, which grows with the alignments."""
    known: dict[int, Example] = torch.load(cache, weights_only=False) if cache.exists() else {}
    missing = [item for item in alignments if item.index not in known]
    for item in tracked(missing, len(missing), "latents"):
        path = folder / f"{item.index:06d}.{item.voice}.wav"
        voice = config.voice_index(item.voice)
        known[item.index] = make_example(item, path, voice, encoder, quantiser)
    if missing:
        torch.save(known, cache)
    return list(known.values())


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
    voice: torch.Tensor
    """[B] int64."""
    latents: torch.Tensor
    """[B, T, Z] float32."""
    codes: torch.Tensor
    """[B, T, Q] int64."""
    frames: torch.Tensor
    """[B] int64."""

    def phone_mask(self) -> torch.Tensor:
        """[B, N, 1] float32: one where there is a phone (a SIL of no length is one too)."""
        return (self.phones >= 0).float().unsqueeze(-1)

    def frame_mask(self) -> torch.Tensor:
        """[B, T, 1] float32."""
        steps = torch.arange(self.latents.shape[1], device=self.frames.device)
        return (steps[None] < self.frames[:, None]).float().unsqueeze(-1)


def collate(examples: Sequence[Example], device: str) -> Batch:
    """Pads examples to the longest; phones by -1, the rest by zero."""
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
        voice=torch.tensor([item.voice for item in examples], device=device),
        latents=pad([item.latents for item in examples], frames),
        codes=pad([item.codes for item in examples], frames),
        frames=torch.tensor([item.frames for item in examples], device=device),
    )


class BatchMaker:
    """Draws batches of examples of similar length, each with about as many frames."""

    def __init__(self, examples: Sequence[Example], frames: int, seed: int) -> None:
        self._examples = sorted(examples, key=lambda item: item.frames)
        self._frames = frames
        self._rng = np.random.default_rng(seed)

    def draw(self) -> list[Example]:
        """Returns the examples of one batch: a random one and its neighbours in length."""
        # By frames, not by examples, so that a second of long sentences counts like a short one's.
        first = int(self._rng.integers(len(self._examples)))
        count = max(4, self._frames // self._examples[first].frames)
        window = 4 * count
        low = max(0, min(first - window // 2, len(self._examples) - window))
        high = min(len(self._examples), low + window)
        picks = self._rng.choice(np.arange(low, high), min(count, high - low), replace=False)
        return [self._examples[i] for i in picks]
