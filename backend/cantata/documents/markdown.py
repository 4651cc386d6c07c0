"""Markdown: what is spoken of it, by CommonMark's blocks and GitHub's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cantata.documents.document import Document
from cantata.documents.web_page import PageBlock, make_document
from cantata.text import strip_markup
from cantata.text.patterns import PHONES_TARGET, TOKENS

_BREAK = re.compile(r"\n\s*\n|\n(?=\[\^[^\]\s]{1,100}\]:)")
"""Between blocks that come as one: of HTML, or footnotes."""
_FENCE = re.compile(r"[ \t]{0,12}(?P<marks>`{3,}(?=[^`]*\Z)|~{3,})")
"""Of code; also inside of lists, from which many writers forget to indent what follows."""
_CHECKBOX = re.compile(r"\[[ xX]\]\s+")
_MAX_NESTING = 100
"""What stands deeper is left out."""
_HEARD = frozenset(("pause", "break", "element", "substitute"))
"""Markup that says how a text sounds, which the voice reads."""


def read_markdown(text: str) -> Document:
    """A document; headings of the first two levels begin chapters."""
    return make_document(read_blocks(text))


def read_blocks(text: str) -> Iterator[PageBlock]:
    """Headings, paragraphs, items and rows, without their marks and without fenced code.

    An item of a numbered list begins with its number, as Markdown counts them. Marks of pauses and
    of phones stay, and so do the lines of a paragraph.
    """
    from markdown_it import MarkdownIt  # takes 50 ms, which other texts need not wait for

    parser = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).enable("table")
    # `[Bob]: Yes.` is a line of a play. What defines a link, `_strip` knows.
    parser.disable(["inline", "reference"])
    numbers: list[int | None] = []  # of the next item of each list around; None: it has none
    lead, level, is_first = "", 0, False
    cells: list[str] | None = None
    for token in parser.parse("\n".join(_drop_code(_drop_front_matter(text)))):
        source = token.content
        match token.type:
            case "bullet_list_open":
                numbers.append(None)
            case "ordered_list_open":
                numbers.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                numbers.pop()
            case "list_item_open":
                is_first = True
                if (number := numbers[-1]) is not None:
                    lead, numbers[-1] = f"{number}. ", number + 1
            case "list_item_close":
                lead = ""
            case "heading_open":
                level = int(token.tag[1:])
            case "tr_open":
                cells = []
            case "tr_close":
                source, cells = ", ".join(cells or ()), None
        if token.type == "inline" and cells is not None:
            cells.extend(_read_block(source))
        elif token.type in ("inline", "tr_close", "code_block", "html_block"):
            marked = _CHECKBOX.match(source) if is_first else None
            for part in _BREAK.split(source[marked.end() :] if marked else source):
                for said in _read_block(part):
                    yield PageBlock(f"{lead}{said}", level)
                    lead = ""
            level, is_first = 0, False


def _drop_front_matter(text: str) -> str:
    """The text behind a block of settings between two lines of `---`."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else text[end + 5 :]


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


def _read_block(source: str) -> Iterator[str]:
    """What is spoken of a block, if there is something."""
    for part in _BREAK.split(_strip(source)):
        lines = (" ".join(line.split()) for line in part.split("\n"))
        said = "\n".join(line for line in lines if line).replace(" ,", ",")
        if any(map(str.isalnum, said)):
            yield said


def _strip(block: str) -> str:
    """A block without its marks, except for those of pauses and of phones."""
    said, start = list[str](), 0
    for found in TOKENS.finditer(block):
        if found.lastgroup in _HEARD or PHONES_TARGET.search(found[0]):
            said += strip_markup(block[start : found.start()]), found[0]
            start = found.end()
    return "".join(said) + strip_markup(block[start:])
