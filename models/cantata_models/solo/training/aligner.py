"""Stage align, second half: a small network aligns all utterances, two hundred times faster.

The network classifies the phone of every 20 ms slot. Dynamic programming then finds the best path
through the phones of the text (a neural network replaces the HMM's mixtures: Bourlard and Morgan
1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from cantata_layers.training.loop import HALF_COSINE, TrainingLoop, make_adamw
from cantata_layers.training.progress import tracked
from cantata_models.solo.config import SoloConfig
from cantata_models.solo.text.tokens import SIL_ID
from cantata_models.solo.training.align import (
    MAX_PHONE_SLOTS,
    Alignment,
    SentenceReading,
    align_missing,
    read_text,
)
from cantata_models.solo.training.audio import TrainingUtterance
from cantata_models.solo.training.crops import INT16_SCALE, read_int16
from cantata_models.solo.training.phone_classifier import HOPS_PER_SLOT, PhoneClassifier, Scores

BATCH = 24
CROP_SLOTS = 128
RATE = 2e-3
MAX_STRETCH = 2.0
"""Largest factor by which a crop is sped up or slowed down: utterances come at every pace."""
MIN_SCORE = 1.0
"""Alignments are rejected if the path's mean log posterior over log prior is below this."""


def best_path(scores: Scores, phones: Sequence[int]) -> tuple[npt.NDArray[np.int64], float]:
    """Finds the number of slots for each phone.

    A phone lasts at least one slot. A SIL may be skipped, except at the end.

    Args:
        scores: [S, phones]. S is at least the number of phones that are not SIL.
        phones: [N] ids.

    Returns:
        [N] slots, and the mean score of the path.
    """
    emitted = scores[:, np.asarray(phones)]
    length, count = emitted.shape
    silent = np.asarray(phones) == SIL_ID
    passable = np.concatenate([[False], silent[:-1]])
    total = np.full(count, -np.inf)
    total[0] = emitted[0, 0]
    if silent[0] and count > 1:
        total[1] = emitted[0, 1]
    steps = np.zeros((length, count), np.int8)
    for slot in range(1, length):
        one = np.concatenate([[-np.inf], total[:-1]])
        two = np.concatenate([[-np.inf, -np.inf], total[:-2]])
        two = np.where(passable, two, -np.inf)
        choices = np.stack([total, one, two])
        steps[slot] = choices.argmax(axis=0)
        total = choices.max(axis=0) + emitted[slot]
    slots = np.zeros(count, np.int64)
    place = count - 1
    for slot in range(length - 1, -1, -1):
        slots[place] += 1
        place -= int(steps[slot, place])
    return slots, float(total[-1] / length)


@dataclass(frozen=True, slots=True)
class _Taught:
    """One utterance of the training set."""

    features: torch.Tensor
    """[2 S, mels]."""
    labels: torch.Tensor
    """[S] int64 phones."""


def _taught(
    network: PhoneClassifier, alignments: Sequence[Alignment], folder: Path, frame: int
) -> list[_Taught]:
    rows = []
    for item in tracked(alignments, len(alignments), "features"):
        samples = _samples(folder / f"{item.index:06d}.{item.speaker}.wav", frame)
        labels = torch.tensor(item.phones).repeat_interleave(torch.tensor(item.slots))
        rows.append(_Taught(network.features(samples), labels))
    return rows


def _samples(path: Path, frame: int) -> torch.Tensor:
    return torch.from_numpy(read_int16(path, frame).astype(np.float32) / INT16_SCALE)


def _crop(item: _Taught, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns [2 CROP_SLOTS, mels] and [CROP_SLOTS] from a random position at a random pace."""
    stretch = MAX_STRETCH ** rng.uniform(-1.0, 1.0)
    wanted = min(len(item.labels), max(2, round(CROP_SLOTS / stretch)))
    start = int(rng.integers(0, len(item.labels) - wanted + 1))
    stop = start + wanted
    features = item.features[HOPS_PER_SLOT * start : HOPS_PER_SLOT * stop]
    played = functional.interpolate(
        features.t()[None], size=HOPS_PER_SLOT * CROP_SLOTS, mode="linear", align_corners=False
    )[0].t()
    places = ((torch.arange(CROP_SLOTS) + 0.5) * wanted / CROP_SLOTS).long()
    return played, item.labels[start:stop][places]


def train_aligner(
    alignments: Sequence[Alignment],
    audio: Path,
    folder: Path,
    config: SoloConfig,
    minutes: float,
) -> PhoneClassifier:
    """Trains on pocketsphinx's alignments; resumes from its checkpoint."""
    torch.manual_seed(5)
    network = PhoneClassifier(config)
    optimizer = make_adamw(network.parameters(), RATE)
    loop = TrainingLoop(
        folder / "aligner.pt", {"network": network}, [optimizer], minutes, HALF_COSINE
    )
    if not loop.finished:
        taught = _taught(network, alignments, audio, config.codec.samples_per_frame)
        counts = torch.bincount(torch.cat([t.labels for t in taught]), minlength=len(config.phones))
        network.get_buffer("log_prior").copy_(torch.log((counts + 1) / (counts + 1).sum()))
        rng = np.random.default_rng(loop.progress.step + 5)

        def step(number: int) -> tuple[torch.Tensor, dict[str, float]]:
            crops = [_crop(taught[i], rng) for i in rng.integers(0, len(taught), BATCH)]
            labels = torch.stack([labels for _, labels in crops])
            logits = network(torch.stack([features for features, _ in crops]))
            loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            right = (logits.argmax(dim=-1) == labels).float().mean()
            return loss, {"loss": loss.item(), "right": right.item()}

        loop.run(step)
    return network.eval().requires_grad_(False)


def align_utterance(
    network: PhoneClassifier, utterance: TrainingUtterance, frame: int
) -> Alignment | None:
    """Returns the utterance's alignment, or None if no alignment is credible."""
    reading: SentenceReading = read_text(utterance.text)
    scores = network.scores(_samples(utterance.path, frame))
    spoken = sum(phone != SIL_ID for phone in reading.phones)
    if len(scores) <= spoken:
        return None
    slots, score = best_path(scores, reading.phones)
    longest = max(n for n, phone in zip(slots, reading.phones, strict=True) if phone != SIL_ID)
    if score < MIN_SCORE or longest * min(utterance.rate, 1.0) > MAX_PHONE_SLOTS:
        return None
    return Alignment(
        utterance.index,
        utterance.speaker.name,
        utterance.rate,
        reading.phones,
        reading.word_start,
        reading.question,
        tuple(int(n) for n in slots),
    )


_worker: tuple[PhoneClassifier, int] | None = None
"""The network and its frame size in this worker process."""


def _start_worker(network: PhoneClassifier, frame: int) -> None:
    global _worker
    torch.set_num_threads(1)
    _worker = network, frame


def _align(utterance: TrainingUtterance) -> Alignment | None:
    assert _worker is not None
    network, frame = _worker
    return align_utterance(network, utterance, frame)


def align_all(
    network: PhoneClassifier,
    utterances: Sequence[TrainingUtterance],
    config: SoloConfig,
    path: Path,
    workers: int,
) -> list[Alignment]:
    """Aligns the utterances missing from `path` with the network; returns the whole file."""
    start = (network, config.codec.samples_per_frame)
    return align_missing(utterances, path, workers, _align, _start_worker, start)
