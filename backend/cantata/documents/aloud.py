"""The text of a document as it is spoken: plain, so that what is shown of it is plain, too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cantata.documents.plain import decode_text, drop_front_matter
from cantata.documents.web_page import read_page
from cantata.text import strip_markup
from cantata.text.patterns import PHONES_TARGET, TOKENS

_FENCE = re.compile(r"[ \t]{0,12}(?P<marks>`{3,}(?=[^`]*\Z)|~{3,})")
"""Of code; also inside of lists."""
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*\Z")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+")
_ROW = re.compile(r"[ \t]*\|")
_BULLET = re.compile(r"\s*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?")
_BLANK = re.compile(r"\n\s*\n")
_HEARD = frozenset(("pause", "break", "element", "substitute"))
"""Markup that says how a text sounds, which the voice reads."""


def read_aloud(data: bytes, kind: str) -> str:
    """What is spoken of a file.

    Args:
        data: the file.
        kind: `md` or `html`, whose markup is left out, or another one: all of the text is spoken.

    Raises:
        InvalidDocument: it is neither UTF-8 nor marked UTF-16.
    """
    text = decode_text(data)
    match kind:
        case "md":
            return "\n\n".join(_read_markdown(text))
        case "html":
            return "\n\n".join(block.text for block in read_page(text).blocks)
        case _:
            return text


def _read_markdown(text: str) -> Iterator[str]:
    """The paragraphs, items and rows, without their marks and without fenced code."""
    lines = "\n".join(_separate_blocks(_drop_code(drop_front_matter(text))))
    for block in _BLANK.split(lines):
        for part in _BLANK.split(_strip(block)):
            said = " ".join(part.split()).replace(" ,", ",")
            if any(map(str.isalnum, said)):
                yield said


def _drop_code(text: str) -> Iterator[str]:
    """The lines outside of fences; an empty one for each fence, which ends a paragraph."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        marks = found["marks"] if found else ""
        if not fence and marks:
            fence = marks
            yield ""
        elif not fence:
            yield line
        elif marks.startswith(fence) and line.strip() == marks:
            fence = ""


def _separate_blocks(lines: Iterator[str]) -> Iterator[str]:
    """The lines, with an empty one wherever a heading, an item or a row begins or ends."""
    for line in lines:
        if _HEADING.match(line):
            yield from ("", _CLOSING.sub("", line), "")
        elif _ROW.match(line):
            yield from ("", line, "")
        else:
            yield from ("", line) if _ITEM.match(line) else (line,)


def _strip(block: str) -> str:
    """A block without its marks, except for those of pauses and of phones."""
    block = _BULLET.sub("", block, count=1) if _BULLET.match(block) else block
    said, start = list[str](), 0
    for found in TOKENS.finditer(block):
        if found.lastgroup in _HEARD or PHONES_TARGET.search(found[0]):
            said += strip_markup(block[start : found.start()]), found[0]
            start = found.end()
    return "".join(said) + strip_markup(block[start:])
