"""HTML: its paragraphs and headings. Nothing is run, expanded or fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser

from cantata.contract.data.errors import InvalidDocument
from cantata.documents.document import Chapter, Document

_UNSPOKEN = frozenset(
    (
        *("script", "style", "head", "nav", "template", "svg", "math", "audio", "video", "object"),
        *("iframe", "noscript", "select", "button", "form", "rt", "rp"),
    )
)
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "caption", "dd", "div", "dl", "dt"),
        *("figcaption", "figure", "footer", "header", "hr", "html", "li", "main", "ol", "p"),
        *("pre", "section", "table", "td", "th", "tr", "ul"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    )
)
_VOID = frozenset(("br", "hr", "img", "input", "meta", "link", "wbr", "col", "source", "area"))
_LISTS = frozenset(("ol", "ul", "menu"))
_NUMBER = re.compile(r"[0-9]{1,9}")
_UNNUMBERED = re.compile(r"list-style[^;]{0,40}none")
_ENTITIES = re.compile(r"<!ENTITY", re.IGNORECASE)
_HEAD_CHARACTERS = 64_000


@dataclass(frozen=True, slots=True)
class PageBlock:
    text: str
    level: int = 0
    """Of a heading, 1 to 6; 0: it is none."""
    anchor: str = ""
    """The last id that was met before its end."""


class _BlockParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[PageBlock] = []
        self.title = ""
        self.language = ""
        self._text: list[str] = []
        self._level = 0
        self._anchor = ""
        self._hidden: list[str] = []
        self._in_title = False
        self._numbers: list[int | None] = []
        self._lead = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = given.get("lang") or given.get("xml:lang", "")
        if tag == "title" and not self.title:
            self._in_title = True
        if tag in _BLOCKS:
            self._end_block()
        if tag in _LISTS:
            self._numbers.append(_find_first_number(given) if tag == "ol" else None)
        elif tag == "li":
            self._begin_item(given.get("value", ""))
        if given.get("id"):
            self._anchor = given["id"]
        if tag == "br":
            self._text.append("\n")
        elif tag == "img" and not self._hidden:
            self._text.append(" ")
        if tag in _UNSPOKEN and tag not in _VOID:
            self._hidden.append(tag)
        if len(tag) == 2 and tag[0] == "h" and tag[1] in "123456":
            self._level = int(tag[1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag in _BLOCKS:
            self._end_block()
        if tag in _LISTS and self._numbers:
            self._numbers.pop()
        if tag == "li":
            self._lead = ""
        if tag in self._hidden:
            while self._hidden.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._hidden:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._end_block()

    def _end_block(self) -> None:
        text = "".join(self._text)
        lines = (" ".join(line.split()) for line in text.split("\n"))
        joined = " ".join(line for line in lines if line)
        if joined:
            self.blocks.append(PageBlock(self._lead + joined, self._level, self._anchor))
            self._lead = ""
        self._text, self._level = [], 0

    def _begin_item(self, value: str) -> None:
        """Count an item; its first block will begin with the number that its list shows."""
        self._lead = ""
        number = self._numbers[-1] if self._numbers else None
        if number is not None and not self._hidden:
            number = int(value) if _NUMBER.fullmatch(value) else number
            self._lead, self._numbers[-1] = f"{number}. ", number + 1


def _find_first_number(list_attributes: Mapping[str, str]) -> int | None:
    """Of a list's items; None: it shows none."""
    if _UNNUMBERED.search(list_attributes.get("style", "")):
        return None
    start = list_attributes.get("start", "")
    return int(start) if _NUMBER.fullmatch(start) else 1


@dataclass(frozen=True, slots=True)
class WebPage:
    blocks: tuple[PageBlock, ...]
    title: str
    language: str


def read_page(text: str) -> WebPage:
    """The blocks of a page; items of numbered lists begin with their numbers. Raises
    InvalidDocument: it declares entities."""
    if _ENTITIES.search(text, 0, _HEAD_CHARACTERS):
        raise InvalidDocument("the document declares entities, which are not expanded")
    parser = _BlockParser()
    parser.feed(text)
    parser.close()
    return WebPage(tuple(parser.blocks), parser.title, parser.language)


def read_html(text: str) -> Document:
    """A page as a document; `<h1>` and `<h2>` begin chapters."""
    page = read_page(text)
    chapters = split_chapters(page.blocks)
    first = next((one.text for one in page.blocks if one.level == 1), "")
    return Document(page.title.strip() or first, "", page.language, tuple(chapters))


def make_document(blocks: Iterable[PageBlock]) -> Document:
    """The document of a text that tells neither author nor language; titled as its first title."""
    chapters = tuple(split_chapters(tuple(blocks)))
    return Document(next((one.title for one in chapters if one.title), ""), "", "", chapters)


def split_chapters(blocks: Sequence[PageBlock]) -> list[Chapter]:
    chapters: list[Chapter] = []
    title, paragraphs = "", list[str]()
    for block in blocks:
        if block.level in (1, 2):
            if paragraphs:
                chapters.append(Chapter(title, tuple(paragraphs)))
            title, paragraphs = block.text, []
        paragraphs.append(block.text)
    return [*chapters, Chapter(title, tuple(paragraphs))] if paragraphs else chapters
