"""EPUB 2 and 3: the text in reading order, chapters by the table of contents, the cover.

The ZIP file is read into memory within limits, never onto the disk. XML is read by defusedxml:
entities are refused, and nothing is fetched. The cover is made anew, so that nothing else in its
file is kept.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from cantata.contract.data.errors import InvalidDocument
from cantata.documents.document import Chapter, DamagedDocument, Document
from cantata.documents.plain import decode_text
from cantata.documents.web_page import PageBlock, read_page, split_chapters

MAX_ENTRIES = 10_000
MAX_ENTRY_BYTES = 32 << 20
MAX_TOTAL_BYTES = 256 << 20
"""Of all entries that are read, once they are unpacked."""
_ENCRYPTED = 0x1


class Archive:
    """The entries of a file. What an entry claims of its size is not believed.

    Raises:
        InvalidDocument: it is no ZIP file, or a damaged one, or has too many entries.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise DamagedDocument("EPUB", error) from error
        self._left = MAX_TOTAL_BYTES
        self.names = frozenset(self._file.namelist())
        if len(self._file.filelist) > MAX_ENTRIES:
            raise InvalidDocument(f"the EPUB has more than {MAX_ENTRIES:,} files")

    def read(self, name: str) -> bytes:
        """An entry's bytes. Raises InvalidDocument: it is not there, damaged, encrypted or too
        large."""
        try:
            entry = self._file.getinfo(name)
            if entry.flag_bits & _ENCRYPTED:
                raise InvalidDocument(f"the EPUB is encrypted ({name[:100]})")
            max_bytes = min(MAX_ENTRY_BYTES, self._left)
            with self._file.open(entry) as opened:
                data = opened.read(max_bytes + 1)
        except KeyError:
            raise DamagedDocument("EPUB", f"it has no file {name[:200]!r}") from None
        except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
            raise DamagedDocument("EPUB", f"{name[:100]}: {error}") from error
        if len(data) > max_bytes:
            raise InvalidDocument(
                f"the EPUB is too large once unpacked ({name[:100]}): at most "
                f"{MAX_ENTRY_BYTES >> 20} MiB a file and {MAX_TOTAL_BYTES >> 20} MiB in all"
            )
        self._left -= len(data)
        return data


MAX_SIDE = 1_400
_MAX_PIXELS = 50_000_000


def redraw_cover(data: bytes) -> bytes:
    """A picture as a JPEG of at most 1,400 pixels a side; empty: it cannot be read."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = _MAX_PIXELS
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return b""
            opened.draft("RGB", (MAX_SIDE, MAX_SIDE))
            picture = opened.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return b""
    picture.thumbnail((MAX_SIDE, MAX_SIDE))
    made = io.BytesIO()
    picture.save(made, "JPEG", quality=88)
    return made.getvalue()


_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_RIGHTS = "META-INF/rights.xml"
_OF_FONTS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""Methods that hide fonts only."""
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")


@dataclass(frozen=True, slots=True)
class _Item:
    path: str
    media_type: str
    properties: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the table of contents."""

    path: str
    anchor: str
    title: str


def read_epub(path: Path) -> Document:
    """A book. Raises InvalidDocument: it is damaged, encrypted, too large, or no EPUB."""
    archive = Archive(path)
    _check_free(archive)
    container = _parse(archive, _CONTAINER)
    package_path = next(
        (
            one.get("full-path", "")
            for one in container.iter()
            if _strip_namespace(one) == "rootfile"
        ),
        "",
    )
    package = _parse(archive, package_path)
    folder = posixpath.dirname(package_path)
    items = {
        one.get("id", ""): _Item(
            _resolve(folder, one.get("href", "")),
            one.get("media-type", ""),
            one.get("properties", ""),
        )
        for one in package.iter()
        if _strip_namespace(one) == "item"
    }
    spine = [
        items[one.get("idref", "")]
        for one in package.iter()
        if _strip_namespace(one) == "itemref"
        and one.get("idref", "") in items
        and one.get("linear") != "no"
    ]
    pages = [one for one in spine if one.media_type in _PAGES and "nav" not in one.properties]
    if not pages:
        raise InvalidDocument("the EPUB has no pages in its reading order")
    contents = _read_contents(archive, package, items)
    chapters = tuple(_iterate_chapters(archive, pages, contents))
    cover = _find_cover(archive, package, items)
    told = {name: _find_text(package, name) for name in ("title", "creator", "language")}
    return Document(told["title"], told["creator"], told["language"], chapters, cover)


def _check_free(archive: Archive) -> None:
    """Refuse a book whose text is encrypted; hidden fonts do not matter."""
    if _RIGHTS in archive.names:
        raise InvalidDocument("the EPUB is protected (META-INF/rights.xml); it cannot be read")
    if _ENCRYPTION in archive.names:
        methods = [
            one.get("Algorithm", "")
            for data in _parse(archive, _ENCRYPTION).iter()
            if _strip_namespace(data) == "EncryptedData"
            for one in data
            if _strip_namespace(one) == "EncryptionMethod"
        ]
        if any(one not in _OF_FONTS for one in methods):
            raise InvalidDocument(
                "the EPUB is encrypted (META-INF/encryption.xml); take one without DRM"
            )


def _iterate_chapters(
    archive: Archive, pages: list[_Item], contents: list[_Entry]
) -> Iterator[Chapter]:
    """Chapters by the table of contents, or else by headings."""
    blocks = [(page.path, block) for page in pages for block in _read_blocks(archive, page)]
    known = {one.path for one in contents}
    if not known & {path for path, _ in blocks}:
        yield from split_chapters([block for _, block in blocks])
        return
    starts = {(one.path, one.anchor): one.title for one in reversed(contents)}
    title, paragraphs, before = "", list[str](), ("", "")
    for path, block in blocks:
        places = [(path, "")] if path != before[0] else []
        if (path, block.anchor) != before:
            places.append((path, block.anchor))
        begun = next((starts[place] for place in reversed(places) if place in starts), None)
        if begun is not None:
            if paragraphs:
                yield Chapter(title, tuple(paragraphs))
            title, paragraphs = begun, []
        paragraphs.append(block.text)
        before = (path, block.anchor)
    if paragraphs:
        yield Chapter(title, tuple(paragraphs))


def _read_blocks(archive: Archive, page: _Item) -> tuple[PageBlock, ...]:
    return read_page(decode_text(archive.read(page.path))).blocks


def _read_contents(archive: Archive, package: Element, items: dict[str, _Item]) -> list[_Entry]:
    """The table of contents of EPUB 3, or else of EPUB 2; empty: there is none."""
    nav = next((one for one in items.values() if "nav" in one.properties.split()), None)
    if nav is not None and nav.path in archive.names:
        return list(_read_nav(_parse(archive, nav.path), posixpath.dirname(nav.path)))
    spine = next((one for one in package.iter() if _strip_namespace(one) == "spine"), None)
    ncx = items.get(spine.get("toc", "") if spine is not None else "")
    if ncx is None or ncx.path not in archive.names:
        return []
    return list(_read_ncx(_parse(archive, ncx.path), posixpath.dirname(ncx.path)))


def _read_nav(root: Element, folder: str) -> Iterator[_Entry]:
    for nav in root.iter():
        kind = next((value for key, value in nav.attrib.items() if key.endswith("}type")), "toc")
        if _strip_namespace(nav) != "nav" or kind != "toc":
            continue
        for link in nav.iter():
            if _strip_namespace(link) == "a" and link.get("href"):
                yield _make_entry(folder, link.get("href", ""), "".join(link.itertext()))


def _read_ncx(root: Element, folder: str) -> Iterator[_Entry]:
    for point in root.iter():
        if _strip_namespace(point) != "navPoint":
            continue
        source = next(
            (one.get("src", "") for one in point if _strip_namespace(one) == "content"), ""
        )
        label = next((one for one in point if _strip_namespace(one) == "navLabel"), None)
        yield _make_entry(folder, source, "" if label is None else "".join(label.itertext()))


def _make_entry(folder: str, link: str, title: str) -> _Entry:
    anchor = unquote(urlsplit(link).fragment)
    return _Entry(_resolve(folder, link), anchor, " ".join(title.split()))


def _find_cover(archive: Archive, package: Element, items: dict[str, _Item]) -> bytes:
    """The picture on the cover, as a JPEG; empty: there is none that can be used."""
    named = next(
        (
            one.get("content", "")
            for one in package.iter()
            if _strip_namespace(one) == "meta" and one.get("name") == "cover"
        ),
        "",
    )
    covers = [one for one in items.values() if "cover-image" in one.properties.split()]
    if named in items:
        covers.append(items[named])
    for one in covers:
        if one.media_type in ("image/jpeg", "image/png") and one.path in archive.names:
            return redraw_cover(archive.read(one.path))
    return b""


def _find_text(package: Element, name: str) -> str:
    return next(
        ("".join(one.itertext()) for one in package.iter() if _strip_namespace(one) == name), ""
    ).strip()


def _parse(archive: Archive, name: str) -> Element:
    try:
        root: Element = ElementTree.fromstring(archive.read(name))
    except DefusedXmlException as error:
        raise InvalidDocument(
            f"the EPUB's {name[:100]} declares entities, which are not expanded"
        ) from error
    except (ParseError, ValueError, LookupError) as error:
        raise DamagedDocument("EPUB", f"{name[:100]} is not XML: {error}") from error
    return root


def _resolve(folder: str, link: str) -> str:
    """An entry's name from a link in a file of a folder."""
    return posixpath.normpath(posixpath.join(folder, unquote(urlsplit(link).path)))


def _strip_namespace(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
