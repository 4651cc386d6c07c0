"""The parts of an EPUB 3 with media overlays: pages, what plays beside them, contents, package.

https://www.w3.org/TR/epub-33/#sec-media-overlays
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from xml.sax.saxutils import escape, quoteattr

from cantata.jobs.narration import NarratedChapter, NarratedSentence

PACKAGE = "package.opf"
NAV = "nav.xhtml"
STYLE = "book.css"
COVER = "cover.jpg"
ACTIVE_CLASS = "spoken"
SOUND_TYPE = "audio/mp4"
STYLES = f""".speaker {{ font-weight: bold; }}
.{ACTIVE_CLASS} {{ background-color: #ffe58a; color: #000; }}
"""
CONTAINER = """<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_UNKNOWN_LANGUAGE = "und"


@dataclass(frozen=True, slots=True)
class BookFacts:
    """What a package says of its book."""

    identifier: str
    """A URN."""
    title: str
    author: str
    """May be empty, as the next."""
    language: str
    """As the document says it."""
    modified_at: float
    """Unix time."""
    narrator: str
    """Who reads; empty: it is not told."""
    has_cover: bool


@dataclass(frozen=True, slots=True)
class ChapterFacts:
    """What a package says of a chapter."""

    name: str
    """Of its files, without their endings."""
    title: str
    seconds: float
    """Of its sound; 0: it has none."""


def choose_language(told: str) -> str:
    """A language tag that packages may have."""
    return told if _LANGUAGE.fullmatch(told) else _UNKNOWN_LANGUAGE


def write_page(chapter: NarratedChapter, title: str, language: str) -> str:
    """A chapter's text as XHTML; each sentence has an id."""
    body = "\n".join(_write_paragraphs(chapter))
    return (
        f"{_XML}<!DOCTYPE html>\n"
        f'<html xmlns="http://www.w3.org/1999/xhtml" {_format_language(language)}>\n'
        f"<head><title>{escape(title)}</title>"
        f'<link rel="stylesheet" type="text/css" href="{STYLE}"/></head>\n'
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _write_paragraphs(chapter: NarratedChapter) -> Iterator[str]:
    number = 0
    for place, paragraph in enumerate(chapter.paragraphs):
        sentences = list[str]()
        for sentence in paragraph:
            sentences.append(f'<span id="s{number}">{escape(sentence.text)}</span>')
            number += 1
        text = " ".join(sentences)
        if speaker := paragraph[0].speaker:
            text = f'<span class="speaker">{escape(speaker)}:</span> {text}'
        is_heading = place == 0 and _is_title(paragraph, chapter.title)
        element = "h1" if is_heading else "p"
        yield f"<{element}>{text}</{element}>"


def _is_title(paragraph: Sequence[NarratedSentence], title: str) -> bool:
    said = " ".join(one.text for one in paragraph)
    return bool(title) and said.casefold() == title.casefold()


def write_overlay(chapter: NarratedChapter, name: str, sample_rate: int) -> str:
    """SMIL that joins a chapter's sentences to its sound."""
    parts, number = list[str](), 0
    for paragraph in chapter.paragraphs:
        for sentence in paragraph:
            if sentence.clip is not None:
                start, end = (f"{place / sample_rate:.3f}s" for place in sentence.clip)
                parts.append(
                    f'<par id="p{number}"><text src="{name}.xhtml#s{number}"/>'
                    f'<audio src="{name}.m4a" clipBegin="{start}" clipEnd="{end}"/></par>'
                )
            number += 1
    joined = "\n".join(parts)
    return (
        f'{_XML}<smil xmlns="http://www.w3.org/ns/SMIL" version="3.0">\n'
        f"<body>\n{joined}\n</body>\n</smil>\n"
    )


def write_nav(chapters: Sequence[ChapterFacts], facts: BookFacts) -> str:
    entries = "\n".join(
        f'<li><a href="{one.name}.xhtml">{escape(one.title)}</a></li>' for one in chapters
    )
    language = choose_language(facts.language)
    return (
        f"{_XML}<!DOCTYPE html>\n"
        '<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops" {_format_language(language)}>\n'
        f"<head><title>{escape(facts.title)}</title></head>\n"
        f'<body><nav epub:type="toc" id="toc"><ol>\n{entries}\n</ol></nav></body>\n</html>\n'
    )


def write_package(chapters: Sequence[ChapterFacts], facts: BookFacts) -> str:
    items = "\n".join(_write_items(chapters, facts))
    spine = "\n".join(f'<itemref idref="{one.name}"/>' for one in chapters)
    metadata = "\n".join(_write_metadata(chapters, facts))
    return (
        f'{_XML}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" '
        f'unique-identifier="id">\n'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">\n{metadata}\n</metadata>\n'
        f"<manifest>\n{items}\n</manifest>\n<spine>\n{spine}\n</spine>\n</package>\n"
    )


def _write_metadata(chapters: Sequence[ChapterFacts], facts: BookFacts) -> Iterator[str]:
    modified = datetime.fromtimestamp(facts.modified_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    yield f'<dc:identifier id="id">{escape(facts.identifier)}</dc:identifier>'
    yield f"<dc:title>{escape(facts.title)}</dc:title>"
    yield f"<dc:language>{choose_language(facts.language)}</dc:language>"
    if facts.author:
        yield f"<dc:creator>{escape(facts.author)}</dc:creator>"
    properties = {
        "dcterms:modified": modified,
        "media:active-class": ACTIVE_CLASS,
        "media:duration": _write_seconds(sum(one.seconds for one in chapters)),
        "media:narrator": facts.narrator,
        "schema:accessibilityFeature": "synchronizedAudioText",
        "schema:accessibilityHazard": "none",
    }
    yield from (
        f'<meta property="{name}">{escape(value)}</meta>'
        for name, value in properties.items()
        if value
    )
    yield from (
        f'<meta property="schema:accessMode">{mode}</meta>' for mode in ("textual", "auditory")
    )
    yield '<meta property="schema:accessModeSufficient">textual</meta>'
    for one in chapters:
        if one.seconds:
            length = _write_seconds(one.seconds)
            yield f'<meta property="media:duration" refines="#{one.name}-smil">{length}</meta>'


def _write_items(chapters: Sequence[ChapterFacts], facts: BookFacts) -> Iterator[str]:
    yield f'<item id="nav" href="{NAV}" media-type="application/xhtml+xml" properties="nav"/>'
    yield f'<item id="style" href="{STYLE}" media-type="text/css"/>'
    if facts.has_cover:
        yield f'<item id="cover" href="{COVER}" media-type="image/jpeg" properties="cover-image"/>'
    for one in chapters:
        name = one.name
        overlay = f' media-overlay="{name}-smil"' if one.seconds else ""
        yield (
            f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"{overlay}/>'
        )
        if one.seconds:
            smil = "application/smil+xml"
            yield f'<item id="{name}-smil" href="{name}.smil" media-type="{smil}"/>'
            yield f'<item id="{name}-sound" href="{name}.m4a" media-type="{SOUND_TYPE}"/>'


def _write_seconds(seconds: float) -> str:
    return f"{seconds:.3f}s"


def _format_language(language: str) -> str:
    told = quoteattr(language)
    return f"lang={told} xml:lang={told}"
