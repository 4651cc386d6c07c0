"""The process that writes the files of a job: `python -m cantata.jobs.writing FOLDER JOB`.

It reads `ResultOptions` in JSON from the first line of its standard input, and writes
`WrittenFiles` in JSON to its standard output. It ends when its standard input does.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from cantata.audio.captions import write_captions
from cantata.audio.encoding import open_encoder
from cantata.audio.formats import output_format
from cantata.audio.pcm import to_float
from cantata.contract.service import SpokenWord
from cantata.jobs.audiobook import MEDIA_TYPE, place_chapters, read_sound, write_audiobook
from cantata.jobs.database import open_jobs
from cantata.jobs.epub_book import EPUB_TYPE, write_epub
from cantata.jobs.job import Job, JobChapter, JobFile, JobLimits
from cantata.jobs.narration import select_narration
from cantata.jobs.results import (
    CAPTIONS,
    NICENESS,
    READ_ALONG,
    WHOLE_BOOK,
    ResultOptions,
    WrittenFiles,
    settle_file,
)
from cantata.jobs.rows import select_job, select_words
from cantata.jobs.store import JobStore

_NAME_CHARACTERS = 60


def main() -> None:
    folder, id = Path(sys.argv[1]), sys.argv[2]
    os.nice(NICENESS)
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=ResultOptions)
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        with closing(open_jobs(folder)) as db:
            written = WrittenFiles(write_files(folder, db, id, options))
    except OSError as error:
        written = WrittenFiles(error=error.strerror or str(error))
    sys.stdout.buffer.write(msgspec.json.encode(written))


def _end_with_input() -> None:
    """WHY: the server that asked may have been killed. The next one writes to the same folder."""
    while os.read(0, 1):  # not by `sys.stdin`, whose lock the end of the process needs
        pass
    os._exit(1)


def write_files(
    folder: Path, db: sqlite3.Connection, id: str, options: ResultOptions
) -> tuple[JobFile, ...]:
    """Write all files of a job.

    Args:
        db: of the jobs; it is only read.

    Raises:
        OSError: the disk does not take them.
    """
    job = select_job(db, id)
    assert job is not None
    store = JobStore(folder, JobLimits())
    target = store.find_results(id)
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(mode=0o700)
    writer = _ResultWriter(store, db, job, options, target)
    if options.form == READ_ALONG:
        return (writer.write_read_along(),)
    return tuple(writer.write_whole() if options.form == WHOLE_BOOK else writer.write_chapters())


@dataclass(frozen=True, slots=True)
class _ResultWriter:
    store: JobStore
    db: sqlite3.Connection
    job: Job
    options: ResultOptions
    folder: Path
    """Of the files."""

    @property
    def sounds(self) -> list[Path]:
        """The chapters' samples."""
        return [self.store.find_sound(self.job.id, one.number) for one in self.job.chapters]

    def write_read_along(self) -> JobFile:
        """The book with its text and its sound."""
        job = self.job
        path, cover = self._name_whole(READ_ALONG)
        narrated = [
            select_narration(self.db, job.id, one.number, one.title, job.shape)
            for one in job.chapters
        ]
        write_epub(job, narrated, self.sounds, path, cover, self.options.tags)
        return settle_file(path, EPUB_TYPE)

    def write_whole(self) -> Iterator[JobFile]:
        """The audiobook, and its captions."""
        path, cover = self._name_whole(WHOLE_BOOK)
        write_audiobook(self.job, self.sounds, path, cover, self.options.tags)
        yield settle_file(path, MEDIA_TYPE)
        if self.options.captions:
            starts = [start for start, _, _ in place_chapters(self.job)]
            yield self._write_captions(path.stem, self.options.captions, self.job.chapters, starts)

    def write_chapters(self) -> Iterator[JobFile]:
        """A file for each chapter, and its captions."""
        shape, options, chapters = self.job.shape, self.options, self.job.chapters
        output = output_format(options.form, shape.sample_rate, shape.channels, options.sample_rate)
        digits = max(2, len(str(len(chapters))))
        for chapter, sound in zip(chapters, self.sounds, strict=True):
            name = _name_chapter(chapter, digits)
            path = self.folder / f"{name}.{options.form}"
            encoder = open_encoder(replace(output, tags=options.tags))
            try:
                with path.open("w+b") as file:
                    for block in read_sound(sound, shape):
                        file.write(encoder.feed(to_float(block)))
                    file.write(encoder.finish())
                    size = file.tell()
                    file.seek(0)
                    file.write(encoder.encode_head(size))
            finally:
                encoder.close()
            yield settle_file(path, output.audio_format.media_type)
            if options.captions:
                yield self._write_captions(name, options.captions, (chapter,), [0])

    def _name_whole(self, ending: str) -> tuple[Path, bytes]:
        """Where a whole book is written, and its cover."""
        cover = self.store.find_folder(self.job.id) / "cover"
        path = self.folder / f"{make_name(self.job.title) or 'book'}.{ending}"
        return path, cover.read_bytes() if cover.exists() else b""

    def _write_captions(
        self, name: str, form: str, chapters: Sequence[JobChapter], starts: Sequence[int]
    ) -> JobFile:
        """Captions of chapters that begin at these samples."""
        rate = self.job.shape.sample_rate
        text, words = "", list[SpokenWord]()
        for chapter, start in zip(chapters, starts, strict=True):
            place = start
            for said, samples, timed in select_words(self.db, self.job.id, chapter.number):
                begun_s, ended_s = place / rate, (place + samples) / rate
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
        path = self.folder / f"{name}.{form}"
        write_captions(path, text, words)
        return settle_file(path, CAPTIONS[form])


def _name_chapter(chapter: JobChapter, digits: int) -> str:
    title, number = make_name(chapter.title), f"{chapter.number + 1:0{digits}}"
    return f"{number}-{title}" if title else number


def make_name(title: str) -> str:
    """A title as a part of a file's name: letters, digits and hyphens of ASCII."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_NAME_CHARACTERS].strip("-")


if __name__ == "__main__":
    main()
