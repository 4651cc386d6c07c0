"""Stage align, first half: pocketsphinx finds when each phone of an utterance is spoken.

Aligning takes an eighth of the audio's duration, so pocketsphinx aligns only some utterances.
`training/aligner.py` learns from these and aligns the rest.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pocketsphinx
import soundfile
import soxr

from cantata_layers.english.lexicon import load_lexicon
from cantata_layers.training.progress import tracked
from cantata_models.solo.networks.text_track import SLOT_S, SLOTS_PER_FRAME
from cantata_models.solo.text.tokens import PHONE_INVENTORY, SIL_ID, phone_ids
from cantata_models.solo.training.audio import SAMPLE_RATE, TrainingUtterance

logger = logging.getLogger(__name__)

ALIGNER_RATE = 16_000
ALIGNER_FRAME_S = 0.01
BOUNDARY_OFFSET_S = 0.0078
"""The aligner's frames are 25.6 ms windows; a boundary lies between the centres of two windows."""
FRAME_SAMPLES = 1920
MAX_PHONE_SLOTS = 40
"""A phone longer than this (0.8 s) means that the alignment failed."""


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence as input for the networks."""

    words: tuple[str, ...]
    phones: tuple[int, ...]
    """Phone ids, with SIL at both ends and at every punctuation mark."""
    word_start: tuple[bool, ...]
    question: bool


@dataclass(frozen=True, slots=True)
class Alignment:
    """A reading and the duration of each phone in slots of 20 ms."""

    index: int
    speaker: str
    rate: float
    """Relative to the speaker's usual pace."""
    phones: tuple[int, ...]
    word_start: tuple[bool, ...]
    question: bool
    slots: tuple[int, ...]


def read_text(text: str) -> SentenceReading:
    """Converts spoken-form text to phones: words from the lexicon, punctuation marks as SIL.

    Raises:
        KeyError: a word is not in the lexicon.
    """
    words: list[str] = []
    phones: list[int] = [SIL_ID]
    starts: list[bool] = [False]
    for token in re.findall(r"[a-z']+|[,.?!]", text.lower()):
        if token in ",.?!":
            if phones[-1] != SIL_ID:
                phones.append(SIL_ID)
                starts.append(False)
            continue
        spoken = load_lexicon().get(token)
        if spoken is None:
            raise KeyError(token)
        words.append(token)
        phones += phone_ids(spoken)
        starts += [position == 0 for position in range(len(spoken))]
    return SentenceReading(tuple(words), tuple(phones), tuple(starts), text.rstrip().endswith("?"))


def write_dictionary(path: Path) -> None:
    """Writes the aligner's dictionary: for each word, the one pronunciation used in speech."""
    lines = (f"{word} {' '.join(phones)}" for word, phones in load_lexicon().items())
    path.write_text("\n".join(lines) + "\n")


def to_slots(ends: list[int], samples: int) -> tuple[int, ...]:
    """Converts the phones' end frames (10 ms) to slots (20 ms) that cover `samples` exactly."""
    total = -(-samples // FRAME_SAMPLES) * SLOTS_PER_FRAME
    seconds = np.array(ends) * ALIGNER_FRAME_S + BOUNDARY_OFFSET_S
    bounds = np.minimum(np.round(seconds / SLOT_S).astype(int), total)
    bounds[-1] = total
    return tuple(int(n) for n in np.diff(bounds, prepend=0))


class Aligner:
    """One pocketsphinx decoder in forced-alignment mode."""

    def __init__(self, dictionary: Path) -> None:
        self._decoder = pocketsphinx.Decoder(lm=None, loglevel="FATAL", dict=str(dictionary))

    def _pass(self, pcm: bytes) -> None:
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()

    def segments(self, reading: SentenceReading, pcm: bytes) -> list[tuple[str, int]]:
        """Returns (phone, frames of 10 ms) in order, silences included."""
        self._decoder.set_align_text(" ".join(reading.words))
        self._pass(pcm)
        self._decoder.set_alignment()
        self._pass(pcm)
        words = self._decoder.get_alignment()
        return [(phone.name, phone.duration) for word in words for phone in word]

    def align(self, utterance: TrainingUtterance) -> Alignment | None:
        """Returns the utterance's alignment, or None if no alignment is credible."""
        reading = read_text(utterance.text)
        sound, _ = soundfile.read(utterance.path, dtype="float32")
        narrow = soxr.resample(sound, SAMPLE_RATE, ALIGNER_RATE)
        pcm = (narrow / np.abs(narrow).max() * 29_000).astype(np.int16).tobytes()
        try:
            ends = phone_ends(reading, self.segments(reading, pcm))
        except (RuntimeError, TypeError):  # no path or no hypothesis found
            return None
        if ends is None:
            return None
        slots = to_slots(ends, len(sound))
        for phone, count in zip(reading.phones, slots, strict=True):
            if phone != SIL_ID and not 1 <= count <= MAX_PHONE_SLOTS:
                return None
        return Alignment(
            utterance.index,
            utterance.speaker.name,
            utterance.rate,
            reading.phones,
            reading.word_start,
            reading.question,
            slots,
        )


def phone_ends(reading: SentenceReading, segments: list[tuple[str, int]]) -> list[int] | None:
    """Matches segments to the reading's phones and returns each phone's end frame.

    A silence belongs to the SIL at its position, or to the phone before it if there is no SIL. A
    SIL without silence gets no frames. Returns None when the phones differ.
    """
    ends: list[int] = []
    clock = 0
    for name, frames in segments:
        clock += frames
        if name not in PHONE_INVENTORY or name == PHONE_INVENTORY[SIL_ID]:
            if len(ends) < len(reading.phones) and reading.phones[len(ends)] == SIL_ID:
                ends.append(clock)
            elif ends:
                ends[-1] = clock
            continue
        if len(ends) < len(reading.phones) and reading.phones[len(ends)] == SIL_ID:
            ends.append(clock - frames)
        if len(ends) == len(reading.phones) or PHONE_INVENTORY[reading.phones[len(ends)]] != name:
            return None
        ends.append(clock)
    if len(ends) == len(reading.phones) - 1:
        ends.append(clock)
    return ends if len(ends) == len(reading.phones) else None


_aligner: Aligner | None = None
"""The aligner of this worker process."""


def _start_worker(dictionary: Path) -> None:
    global _aligner
    _aligner = Aligner(dictionary)


def _align(utterance: TrainingUtterance) -> Alignment | None:
    assert _aligner is not None
    return _aligner.align(utterance)


def _parse(row: dict[str, Any]) -> Alignment:
    parsed: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Alignment(**parsed)


def read_alignments(path: Path) -> list[Alignment]:
    """Reads a file of alignments. Returns none if the file does not exist."""
    if not path.exists():
        return []
    return [_parse(json.loads(line)) for line in path.read_text().splitlines()]


def align_missing(
    utterances: Sequence[TrainingUtterance],
    path: Path,
    workers: int,
    align: Callable[[TrainingUtterance], Alignment | None],
    start_worker: Callable[..., None],
    start: tuple[object, ...],
) -> list[Alignment]:
    """Aligns every rendered utterance missing from `path`, appends it, and returns the whole file.

    Args:
        align: runs in worker processes, each initialized by `start_worker(*start)`.
    """
    known = {item.index for item in read_alignments(path)}
    missing = [item for item in utterances if item.done and item.index not in known]
    failed = 0
    with ProcessPoolExecutor(workers, initializer=start_worker, initargs=start) as pool:
        results = pool.map(align, missing, chunksize=16)
        with path.open("a") as out:
            for result in tracked(results, len(missing), "align"):
                if result is None:
                    failed += 1
                else:
                    out.write(json.dumps(asdict(result)) + "\n")
                    out.flush()  # an interrupted run leaves only whole lines
    logger.info("%d alignments failed of %d", failed, len(missing))
    return read_alignments(path)


def align_some(
    utterances: Sequence[TrainingUtterance], path: Path, workers: int
) -> list[Alignment]:
    """Aligns the utterances missing from `path` with pocketsphinx; returns the whole file."""
    dictionary = path.with_suffix(".dict")
    write_dictionary(dictionary)
    return align_missing(utterances, path, workers, _align, _start_worker, (dictionary,))
