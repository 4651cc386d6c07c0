"""What is read of a document, and what kinds of it there are."""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any

from cantata.contract.data.errors import InvalidDocument

KINDS = {
    ".txt": "txt",
    ".text": "txt",
    ".md": "md",
    ".markdown": "md",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".epub": "epub",
    ".pdf": "pdf",
}
"""Kinds of documents by the endings of their names."""
MAX_TITLE_CHARACTERS = 300
MAX_CHARACTERS = 10_000_000
"""Of one document, 160 hours of speech."""
MAX_CHAPTERS = 2_000


class DamagedDocument(InvalidDocument):
    """A file is not what its name says, or a part of it is lost. `kind`: such as `PDF`."""

    def __init__(self, kind: str, reason: object) -> None:
        found = str(reason).rstrip(".")
        super().__init__(f"the {kind} is damaged ({found}); download or export it again")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A part of a document with a name."""

    title: str
    """May be empty."""
    paragraphs: tuple[str, ...]
    """None of them empty; the heading is one."""


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    """May be empty, as the next two."""
    author: str
    language: str
    """BCP 47."""
    chapters: tuple[Chapter, ...]
    cover: bytes = b""
    """A JPEG; empty: there is none."""


def find_kind(name: str) -> str:
    """The kind of a file, one of the values of `KINDS`. Raises InvalidDocument: the name's ending
    is none of those."""
    ending = PurePath(name).suffix.lower()
    if ending not in KINDS:
        raise InvalidDocument(f"{name[:100]!r} is no document; valid endings: {', '.join(KINDS)}")
    return KINDS[ending]


def check_document(document: Document) -> Document:
    """The document with tidy titles, without chapters that have nothing to say. Raises
    InvalidDocument: it has no text, or too much."""
    chapters = tuple(
        replace(one, title=tidy_title(one.title))
        for one in document.chapters
        if any(character.isalnum() for paragraph in one.paragraphs for character in paragraph)
    )
    if not chapters:
        raise InvalidDocument("the document has no text to speak")
    if len(chapters) > MAX_CHAPTERS:
        raise InvalidDocument(f"the document has more than {MAX_CHAPTERS:,} chapters")
    if sum(len(text) for one in chapters for text in one.paragraphs) > MAX_CHARACTERS:
        raise InvalidDocument(f"the document has more than {MAX_CHARACTERS:,} characters")
    return replace(
        document,
        title=tidy_title(document.title),
        author=tidy_title(document.author),
        language=document.language.strip()[:35],
        chapters=chapters,
    )


def tidy_title(text: str) -> str:
    """A title on one line."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(printable.split())[:MAX_TITLE_CHARACTERS]


def dump_document(document: Document) -> str:
    cover = base64.b64encode(document.cover).decode("ascii")
    return json.dumps({**asdict(document), "cover": cover})


def load_document(dumped: str) -> Document:
    fields: dict[str, Any] = json.loads(dumped)
    chapters = tuple(Chapter(one["title"], tuple(one["paragraphs"])) for one in fields["chapters"])
    cover = base64.b64decode(fields["cover"])
    return Document(fields["title"], fields["author"], fields["language"], chapters, cover)
