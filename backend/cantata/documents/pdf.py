"""PDF: the text of its pages, as far as it has one; chapters by its outline."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cantata.contract.data.errors import InvalidDocument, NotInstalled
from cantata.documents.document import Chapter, DamagedDocument, Document

MAX_PAGES = 5_000
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad]\n(?=[a-z\u00df-\u00ff])")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n+|(?<=[.!?\u201d\"])\n(?=[A-Z0-9\u201c\"])")
_PAGE_NUMBER = re.compile(r"\s*\d{1,4}\s*")


def read_pdf(path: Path) -> Document:
    """A PDF file.

    Raises:
        InvalidDocument: it is damaged, encrypted, or has no text, only pictures of it.
        NotInstalled: pypdf is not there.
    """
    try:
        import pypdf
        from pypdf.errors import PyPdfError
    except ImportError:
        raise NotInstalled("PDF needs the package pypdf: pip install 'cantata[books]'") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not _opens_without_password(reader):
            raise InvalidDocument("the PDF is encrypted; save it without a password first")
        if len(reader.pages) > MAX_PAGES:
            raise InvalidDocument(f"the PDF has more than {MAX_PAGES:,} pages")
        pages = [page.extract_text() for page in reader.pages]
        starts = dict(_read_outline(reader, reader.outline))
        told = reader.metadata
        title, author = (told.title or "", told.author or "") if told else ("", "")
    except InvalidDocument:
        raise
    except PyPdfError as error:
        raise DamagedDocument("PDF", error) from error
    except Exception as error:  # whatever else the library stumbles over is the file's fault
        raise DamagedDocument("PDF", type(error).__name__) from error
    if not any(character.isalnum() for page in pages for character in page):
        raise InvalidDocument(
            "the PDF has no text: its pages are pictures; run a text recognizer over it first"
        )
    return Document(title, author, "", tuple(_iterate_chapters(pages, starts)))


def _opens_without_password(reader: Any) -> bool:
    try:
        return bool(reader.decrypt(""))
    except Exception:  # a method that the library, or this machine, does not know
        return False


def _read_outline(reader: Any, entries: Any) -> Iterator[tuple[int, str]]:
    """Page from 0 and title of the outline's first level, the last of a page first."""
    for entry in reversed(entries):
        if isinstance(entry, list):
            continue
        page = reader.get_destination_page_number(entry)
        if page is not None and page >= 0:
            yield page, str(entry.title or "")


def _iterate_chapters(pages: list[str], starts: dict[int, str]) -> Iterator[Chapter]:
    title, text = "", ""
    for number, page in enumerate(pages):
        if number in starts:
            if text.strip():
                yield Chapter(title, split_paragraphs(text))
            title, text = starts[number], ""
        lines = page.replace("\r", "").split("\n")
        kept = (line for line in lines if not _PAGE_NUMBER.fullmatch(line))
        text += "\n".join(kept).strip() + "\n"
    if text.strip():
        yield Chapter(title, split_paragraphs(text))


def split_paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of lines, with words whole again that lines have divided."""
    whole = _HYPHEN.sub("", text)
    found = (" ".join(one.split()) for one in _PARAGRAPH.split(whole))
    return tuple(one for one in found if one)
