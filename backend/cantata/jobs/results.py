"""The files of a job: a book as a whole, or a file for each chapter; captions beside them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from cantata.audio.captions import write_captions
from cantata.audio.encoding import open_encoder
from cantata.audio.formats import output_format
from cantata.audio.pcm import to_float
from cantata.contract.data.errors import InvalidRequest, NotStored
from cantata.contract.service import SpokenWord
from cantata.jobs.audiobook import MEDIA_TYPE, place_chapters, write_audiobook
from cantata.jobs.job import Job, JobChapter, JobFile, SoundShape
from cantata.jobs.rows import TimedSentence
from cantata.jobs.sound import read_sound
from cantata.jobs.store import JobStore

WHOLE_BOOK = "m4b"
"""The format that holds all chapters in one file."""
CAPTIONS = {"srt": "application/x-subrip", "vtt": "text/vtt"}
"""Formats of captions, and their media types."""
_NAME_CHARACTERS = 60
_NICENESS = 5


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Which files a job has."""

    form: str
    """One of `FORMATS`, or `WHOLE_BOOK`."""
    sample_rate: int | None = None
    """Hz; None: the model's, or the next that the format has."""
    captions: str | None = None
    """One of `CAPTIONS`; None: none."""
    tags: tuple[tuple[str, str], ...] = ()
    """That say who made them."""


def check_results(options: ResultOptions, shape: SoundShape) -> None:
    """Check before the work is done whether such files can be written.

    Raises:
        InvalidRequest: the format cannot have this sample rate, or not so many channels.
    """
    if options.form == WHOLE_BOOK and options.sample_rate is not None:
        raise InvalidRequest("sample_rate: m4b has the model's own; leave it out", "sample_rate")
    form = "aac" if options.form == WHOLE_BOOK else options.form
    output_format(form, shape.sample_rate, shape.channels, options.sample_rate)


async def write_results(store: JobStore, job: Job, options: ResultOptions) -> tuple[JobFile, ...]:
    """Write all files of a job that is spoken, instead of those of an attempt that was cut off.

    Raises:
        NotStored: the disk does not take them.
    """
    spoken = [
        await store.list_words(job.id, one.number) if options.captions else []
        for one in job.chapters
    ]
    # An hour of AAC takes a minute of CPU time, which live streams need more.
    thread = ThreadPoolExecutor(1, "results", initializer=os.nice, initargs=(_NICENESS,))
    loop = asyncio.get_running_loop()
    writing = loop.run_in_executor(thread, _write, store, job, options, spoken)
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing])  # the thread uses files that others may delete
        raise
    finally:
        thread.shutdown()


def _write(
    store: JobStore, job: Job, options: ResultOptions, spoken: Sequence[list[TimedSentence]]
) -> tuple[JobFile, ...]:
    folder = store.find_results(job.id)
    sounds = [store.find_sound(job.id, one.number) for one in job.chapters]
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        if options.form == WHOLE_BOOK:
            return tuple(_write_whole(store, job, options, sounds, spoken))
        return tuple(_write_chapters(job, options, sounds, spoken, folder))
    except OSError as error:
        raise NotStored(f"the files cannot be written: {error.strerror}") from error


def _write_whole(
    store: JobStore,
    job: Job,
    options: ResultOptions,
    sounds: Sequence[Path],
    spoken: Sequence[list[TimedSentence]],
) -> Iterator[JobFile]:
    folder, name = store.find_results(job.id), make_name(job.title) or "book"
    path, cover = folder / f"{name}.{WHOLE_BOOK}", store.find_folder(job.id) / "cover"
    picture = cover.read_bytes() if cover.exists() else b""
    write_audiobook(job, sounds, path, picture, options.tags)
    yield _settle(path, MEDIA_TYPE)
    if options.captions:
        starts = [start for start, _, _ in place_chapters(job)]
        yield _write_captions(folder, name, options.captions, job, spoken, starts)


def _write_chapters(
    job: Job,
    options: ResultOptions,
    sounds: Sequence[Path],
    spoken: Sequence[list[TimedSentence]],
    folder: Path,
) -> Iterator[JobFile]:
    shape = job.shape
    output = output_format(options.form, shape.sample_rate, shape.channels, options.sample_rate)
    digits = max(2, len(str(len(job.chapters))))
    for chapter, sound in zip(job.chapters, sounds, strict=True):
        name = _name_chapter(chapter, digits)
        path = folder / f"{name}.{options.form}"
        encoder = open_encoder(replace(output, tags=options.tags))
        try:
            with path.open("w+b") as file:
                for block in read_sound(sound, shape):
                    file.write(encoder.feed(to_float(block)))
                file.write(encoder.finish())
                size = file.tell()
                file.seek(0)
                file.write(encoder.head(size))
        finally:
            encoder.close()
        yield _settle(path, output.audio_format.media_type)
        if options.captions:
            words = [spoken[chapter.number]]
            yield _write_captions(folder, name, options.captions, job, words, [0])


def _write_captions(
    folder: Path,
    name: str,
    form: str,
    job: Job,
    spoken: Sequence[list[TimedSentence]],
    starts: Sequence[int],
) -> JobFile:
    """Captions of chapters that begin at these samples."""
    text, words = "", list[SpokenWord]()
    for sentences, start in zip(spoken, starts, strict=True):
        place = start
        for said, samples, timed in sentences:
            begun_s, ended_s = (n / job.shape.sample_rate for n in (place, place + samples))
            # What has no word times is one caption.
            for word in timed or (SpokenWord(0, len(said), 0.0, ended_s - begun_s),):
                words.append(
                    SpokenWord(
                        len(text) + word.text_start,
                        len(text) + word.text_end,
                        begun_s + word.start_s,
                        begun_s + word.end_s,
                    )
                )
            text += f"{said}\n"
            place += samples
    path = folder / f"{name}.{form}"
    write_captions(path, text, words)
    return _settle(path, CAPTIONS[form])


def _settle(path: Path, media_type: str) -> JobFile:
    """See a file on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(handle)
        return JobFile(path.name, media_type, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _name_chapter(chapter: JobChapter, digits: int) -> str:
    title, number = make_name(chapter.title), f"{chapter.number + 1:0{digits}}"
    return f"{number}-{title}" if title else number


def make_name(title: str) -> str:
    """A title as a part of a file's name: letters, digits and hyphens of ASCII."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_NAME_CHARACTERS].strip("-")
