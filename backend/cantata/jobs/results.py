"""The files of a job, from the bare samples of its chapters."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.audio.encoding import open_encoder
from cantata.audio.formats import output_format
from cantata.audio.pcm import to_float
from cantata.jobs.job import Job, JobFile, SoundShape

_BLOCK_SAMPLES = 1 << 16
_NAME_CHARACTERS = 60

Tags = tuple[tuple[str, str], ...]
Pcm16 = NDArray[np.int16]


def write_chapters(
    job: Job, sounds: list[Path], folder: Path, form: str, sample_rate: int | None, tags: Tags
) -> Iterator[JobFile]:
    """Write a file for each chapter; blocks.

    Args:
        job: with its chapters.
        sounds: the chapters' samples.
        folder: for the files; exists.
        form: one of `FORMATS`.
        sample_rate: Hz; None: the model's, or the next that the format has.
        tags: that say who made it.
    """
    shape = job.shape
    output = output_format(form, shape.sample_rate, shape.channels, sample_rate)
    digits = len(str(len(job.chapters)))
    for chapter, sound in zip(job.chapters, sounds, strict=True):
        title = make_name(chapter.title)
        number = f"{chapter.number + 1:0{max(2, digits)}}"
        name = f"{number}-{title}.{form}" if title else f"{number}.{form}"
        encoder = open_encoder(replace(output, tags=tags))
        try:
            with (folder / name).open("w+b") as file:
                for block in read_sound(sound, shape):
                    file.write(encoder.feed(to_float(block)))
                file.write(encoder.finish())
                size = file.tell()
                file.seek(0)
                file.write(encoder.head(size))
                file.flush()
                os.fdatasync(file.fileno())
        finally:
            encoder.close()
        yield JobFile(name, output.audio_format.media_type, size)


def read_sound(path: Path, shape: SoundShape) -> Iterator[Pcm16]:
    """The samples of a chapter, [N, C] in each block; none if nothing of it was spoken."""
    if not path.exists():
        return
    with path.open("rb") as file:
        while data := file.read(_BLOCK_SAMPLES * shape.channels * 2):
            yield np.frombuffer(data, "<i2").reshape(-1, shape.channels)


def make_name(title: str) -> str:
    """A title as a part of a file's name: letters, digits and hyphens of ASCII."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_NAME_CHARACTERS].strip("-")
