"""A book as one EPUB 3: its text, and its sound beside it, sentence by sentence."""

from __future__ import annotations

import hashlib
import shutil
import uuid
import zipfile
from collections.abc import Sequence
from pathlib import Path

from cantata.jobs import epub_pages as pages
from cantata.jobs.audiobook import write_chapter_sound
from cantata.jobs.epub_pages import BookFacts, ChapterFacts
from cantata.jobs.job import Job
from cantata.jobs.narration import NarratedChapter

EPUB_TYPE = "application/epub+zip"
_FOLDER = "EPUB"
_NARRATOR = "A synthetic voice"


def write_epub(
    job: Job,
    chapters: Sequence[NarratedChapter],
    sounds: Sequence[Path],
    path: Path,
    cover: bytes,
    tags: Sequence[tuple[str, str]],
) -> None:
    """Write the file; blocks.

    Args:
        job: of one or two channels.
        path: where; the sound of a chapter is written beside it meanwhile.
        cover: a JPEG; empty: none.
    """
    title = job.title or next((one.title for one in chapters if one.title), "") or "Book"
    digits = max(2, len(str(len(chapters))))
    told = list[ChapterFacts]()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # Readers know the file by these bytes at its beginning.
        archive.writestr(_build_entry("mimetype", zipfile.ZIP_STORED), EPUB_TYPE)
        archive.writestr(_build_entry("META-INF/container.xml"), pages.CONTAINER)
        for number, (chapter, sound) in enumerate(zip(chapters, sounds, strict=True), 1):
            seconds = chapter.samples / job.shape.sample_rate if chapter.is_heard else 0.0
            name = f"c{number:0{digits}}"
            facts = ChapterFacts(name, chapter.title or f"Chapter {number}", seconds)
            told.append(facts)
            language = pages.choose_language(job.language)
            _put(archive, f"{name}.xhtml", pages.write_page(chapter, facts.title, language))
            if not seconds:
                continue
            rate = job.shape.sample_rate
            _put(archive, f"{name}.smil", pages.write_overlay(chapter, name, rate))
            encoded = path.with_suffix(".m4a")
            try:
                described = (("title", facts.title), *tags)
                write_chapter_sound(job.shape, sound, encoded, described)
                _put_file(archive, f"{name}.m4a", encoded)
            finally:
                encoded.unlink(missing_ok=True)
        book = BookFacts(
            identifier=_identify(job, title, chapters),
            title=title,
            author=job.author,
            language=job.language,
            modified_at=job.created_at,
            narrator=_NARRATOR if tags else "",
            has_cover=bool(cover),
        )
        _put(archive, pages.NAV, pages.write_nav(told, book))
        _put(archive, pages.STYLE, pages.STYLES)
        if cover:
            archive.writestr(_build_entry(f"{_FOLDER}/{pages.COVER}", zipfile.ZIP_STORED), cover)
        _put(archive, pages.PACKAGE, pages.write_package(told, book))


def _identify(job: Job, title: str, chapters: Sequence[NarratedChapter]) -> str:
    """The same for the same text, read in the same time: readers keep a place by it."""
    digest = hashlib.sha256(repr((title, job.author, chapters)).encode())
    return uuid.uuid5(uuid.NAMESPACE_URL, digest.hexdigest()).urn


def _build_entry(name: str, method: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    """Without the time of day, so that the same book is the same file."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = method
    entry.external_attr = 0o644 << 16
    return entry


def _put(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(_build_entry(f"{_FOLDER}/{name}"), text)


def _put_file(archive: zipfile.ZipFile, name: str, source: Path) -> None:
    entry = _build_entry(f"{_FOLDER}/{name}", zipfile.ZIP_STORED)
    entry.file_size = source.stat().st_size
    with source.open("rb") as opened, archive.open(entry, "w") as target:
        shutil.copyfileobj(opened, target, 1 << 20)
