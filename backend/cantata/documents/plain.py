"""Texts and Markdown: chapters begin at headings. Markup stays, for the reader of markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from cantata.contract.data.errors import InvalidDocument
from cantata.documents.document import Chapter, Document
from cantata.text import strip_markup

TitleFinder = Callable[[str], str]
"""The title of the chapter that a block begins; empty: it begins none."""

_HEADING = re.compile(r" {0,3}(#{1,2})[ \t]+(\S[^\n]*)")
_UNDERLINED = re.compile(r"(?P<title>[^\n]+)\n {0,3}(?:=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CHAPTER_LINE = re.compile(
    r"(?:chapter|part|book|act|letter|prologue|epilogue|preface|introduction)\b[^\n]{0,60}",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\W*\w+(?:\W+(?:[0-9]+|[ivxlcdm]+|one|two|three|four|five|six|seven|eight|nine|ten|eleven"
    r"|twelve|the\s+(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last))"
    r"\b.*)?",
    re.IGNORECASE,
)


def decode_text(data: bytes) -> str:
    """The text of a file in UTF-8, or in UTF-16 with its mark.

    Raises:
        InvalidDocument: it is in neither.
    """
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        text = data.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        named = "UTF-16, as its mark says" if marked else "UTF-8"
        raise InvalidDocument(
            f"the text is not {named} (byte {error.start}); save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def read_plain(data: bytes, kind: str) -> Document:
    """A file of the kind `txt` or `md`; errors as of `decode_text`."""
    text = decode_text(data)
    return read_markdown(text) if kind == "md" else read_text(text)


def read_text(text: str) -> Document:
    """A text without markup of its own; a line such as `Chapter 2`, alone, begins a chapter."""
    return _collect(_split_blocks(text), _find_chapter_line)


def read_markdown(text: str) -> Document:
    """Markdown; headings of the first two levels begin chapters."""
    return _collect(_split_blocks(drop_front_matter(text)), _find_heading)


def drop_front_matter(text: str) -> str:
    """The text behind a block of settings between two lines of `---`."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else text[end + 5 :]


def _split_blocks(text: str) -> Iterator[str]:
    """What stands between blank lines; a fence is one block. A heading is a block of its own."""
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        opened = _FENCE.match(line)
        is_heading = not fence and _HEADING.fullmatch(line)
        if block and ((not fence and not line.strip()) or is_heading):
            yield "\n".join(block)
            block = []
        if is_heading:
            yield line
        elif line.strip() or fence:
            block.append(line)
        if opened and not fence:
            fence = opened[1]
        elif opened and opened[1].startswith(fence) and line.strip() == opened[1]:
            fence = ""
    if block:
        yield "\n".join(block)


def _find_heading(block: str) -> str:
    found = _HEADING.fullmatch(block)
    if found:
        return found[2]
    under = _UNDERLINED.fullmatch(block)
    return under["title"] if under else ""


def _find_chapter_line(block: str) -> str:
    line = block.strip()
    is_one = _CHAPTER_LINE.fullmatch(line) and _NUMBERED.fullmatch(line)
    return line if is_one and not line.endswith((",", ";")) else ""


def _collect(blocks: Iterator[str], find_title: TitleFinder) -> Document:
    chapters: list[Chapter] = []
    title, paragraphs = "", list[str]()
    for block in blocks:
        begun = find_title(block)
        if begun:
            if paragraphs:
                chapters.append(Chapter(title, tuple(paragraphs)))
            title, paragraphs = strip_markup(begun), []
        paragraphs.append(block)
    if paragraphs:
        chapters.append(Chapter(title, tuple(paragraphs)))
    first = next((one.title for one in chapters if one.title), "")
    return Document(first if len(chapters) > 1 else title, "", "", tuple(chapters))
