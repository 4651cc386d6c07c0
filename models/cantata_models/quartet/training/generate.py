"""The teacher reads the texts, shard by shard; shards that are there are kept."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from cantata_layers.misaki.g2p import load_g2p
from cantata_layers.misaki.phones import vocabulary
from cantata_models.quartet.training.shards import AnnotatedSpeech, write_shard
from cantata_models.quartet.training.teachers import (
    ScriptLine,
    SpeechTeacher,
    TeachingVoice,
    list_followed_voices,
    list_stock_voices,
)
from cantata_models.quartet.training.texts import TextMaker

logger = logging.getLogger(__name__)

SPEEDS = (0.9, 1.15)
TEXTS = 24
"""Texts in a shard."""
PLANNED_TEXTS = 200
"""Texts in a shard without sound."""
MIN_PHONES = 6
MAX_PHONES = 300
"""With the padding. Longer readings take much memory and vary no more."""


@dataclass(frozen=True, slots=True)
class DataPart:
    """One part of the data: who reads how much."""

    name: str
    voices: tuple[TeachingVoice, ...]
    shards: int
    texts: int
    """Texts in a shard."""
    has_sound: bool = True
    """False: the teacher only plans them, which teaches the prosody alone."""

    def find_path(self, folder: Path, number: int) -> Path:
        """Return the path of a shard."""
        return folder / f"{self.name}-{number:04d}.npz"


def plan_speech(packages: Path, scale: float) -> tuple[DataPart, ...]:
    """About six hours at a scale of 1: an hour of each stock voice, 45 s of each other. Beside it
    26 hours that have no sound, five of each stock voice, two minutes of each other. Below a scale
    of 0.17, not every other voice speaks twice, so not all of them are followed.

    Raises:
        PackageMissing: the styles are not there.
    """
    stock, followed = list_stock_voices(packages), list_followed_voices(packages).trained
    return (
        DataPart("stock", stock, max(1, round(140 * scale)), TEXTS),
        DataPart("clones", followed, max(1, round(84 * scale)), TEXTS),
        DataPart("melodies", stock, max(1, round(100 * scale)), PLANNED_TEXTS, has_sound=False),
        DataPart(
            "clones-melodies",
            followed,
            max(1, round(30 * scale)),
            PLANNED_TEXTS,
            has_sound=False,
        ),
    )


def write_speech(part: DataPart, teacher: Callable[[], SpeechTeacher], folder: Path) -> None:
    """Writes the shards that are missing, and logs each as a line of JSON.

    Args:
        part: which shards.
        teacher: opens it; not called if nothing is missing.
        folder: of the shards.
    """
    missing = [n for n in range(part.shards) if not part.find_path(folder, n).exists()]
    if not missing:
        return
    opened = teacher()
    for number in missing:
        began = time.process_time()
        spoken = list(read_texts(part, number, opened))
        write_shard(part.find_path(folder, number), spoken)
        seconds = sum(one.seconds for one in spoken)
        line = {
            "shard": f"{part.name}-{number:04d}",
            "texts": len(spoken),
            "seconds": round(seconds, 1),
            "times_real_time": round(seconds / (time.process_time() - began), 2),
        }
        with (folder / "generated.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        logger.info("%s", line)


def read_texts(part: DataPart, number: int, teacher: SpeechTeacher) -> Iterator[AnnotatedSpeech]:
    """The utterances of one shard: the same for the same part and number."""
    # A part's name becomes a number, so that its texts differ from those of others.
    key = [number, *part.name.encode()]
    rng, maker = np.random.default_rng(key), TextMaker(key)
    for index in range(part.texts):
        voice = part.voices[(number * part.texts + index) % len(part.voices)]
        for phones, text in read_aloud(maker.draw(), voice.british):
            speed = round(float(rng.uniform(*SPEEDS)), 3)
            read = teacher.read if part.has_sound else teacher.plan
            yield read(voice, ScriptLine(text, phones, speed))


def read_aloud(text: str, british: bool) -> Iterator[tuple[tuple[int, ...], str]]:
    """The phones of a text, with the text that they are of.

    A paragraph stays one reading if the teacher can read so much at once, so that its sentences
    have the melody of a paragraph; else its sentences are read one by one.
    """
    sentences = load_g2p(british).read(text)
    if not sentences:
        return
    starts = [sentence.words[0].span.start for sentence in sentences]
    parts = [text[a:b].strip() for a, b in pairwise([0, *starts[1:], len(text)])]
    space = vocabulary()[" "]
    joined = [sentences[0].phones[0]]
    for sentence in sentences:
        joined += [*sentence.phones[1:-1], space]
    joined[-1] = sentences[-1].phones[-1]
    options = [(tuple(joined), text)]
    if len(joined) > MAX_PHONES:
        options = [(s.phones, part) for s, part in zip(sentences, parts, strict=True)]
    yield from (one for one in options if MIN_PHONES <= len(one[0]) <= MAX_PHONES)
