"""Plain texts: chapters begin at lines that name them. Markup stays, for the reader of markup."""

from __future__ import annotations

import re

from cantata.contract.data.errors import InvalidDocument
from cantata.documents.document import Document
from cantata.documents.markdown import read_markdown
from cantata.documents.web_page import PageBlock, make_document

_BLANK = re.compile(r"\n\s*\n")
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
    """The text of a file in UTF-8, or in UTF-16 with its mark. Raises InvalidDocument: it is in
    neither."""
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
    parts = (part.strip("\n") for part in _BLANK.split(text))
    blocks = [PageBlock(part, int(_is_chapter_line(part))) for part in parts if part.strip()]
    return make_document(blocks)


def _is_chapter_line(block: str) -> bool:
    line = block.strip()
    is_one = _CHAPTER_LINE.fullmatch(line) and _NUMBERED.fullmatch(line)
    return bool(is_one) and not line.endswith((",", ";"))
