"""What is read of documents, and what is refused: in this process, and in the confined one."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from cantata.contract.data.errors import InvalidDocument
from cantata.documents import epub
from cantata.documents.aloud import read_aloud
from cantata.documents.document import Chapter, Document, check_document, find_kind
from cantata.documents.epub import read_epub
from cantata.documents.markdown import read_markdown
from cantata.documents.pdf import read_pdf, split_paragraphs
from cantata.documents.plain import decode_text, read_text
from cantata.documents.reader import DocumentReader
from cantata.documents.web_page import read_html
from documents_made import NAV, ONE, PACKAGE, make_epub, make_pdf

ENCRYPTION = """<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{}"/>
</EncryptedData></encryption>"""
AES = "http://www.w3.org/2001/04/xmlenc#aes128-cbc"
FONTS = "http://www.idpf.org/2008/embedding"
NCX = """<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://127.0.0.1:9/ncx.dtd">
<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Sea</text>
</navLabel><content src="text/one.xhtml"/></navPoint></navMap></ncx>"""
LAUGHS = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "document"
    path.write_bytes(data)
    return path


def is_jpeg(cover: bytes) -> bool:
    with Image.open(io.BytesIO(cover)) as picture:
        return (picture.format, picture.size) == ("JPEG", (40, 60))


def titles(document: Document) -> list[str]:
    return [one.title for one in document.chapters]


def test_a_text_has_chapters_at_lines_that_name_them() -> None:
    document = read_text("Before.\n\nCHAPTER I\n\nOne.\nStill one.\n\nChapter 2: On\n\nTwo.")
    assert titles(document) == ["", "CHAPTER I", "Chapter 2: On"]
    assert document.chapters[1].paragraphs == ("CHAPTER I", "One.\nStill one.")
    assert titles(read_text("Part of it is told.\n\nBook the table, she said.")) == [""]


def test_markdown_has_chapters_at_headings_but_not_in_fences() -> None:
    text = "---\ntitle: x\n---\n# A *book*\n\nOne.\n## Two #\nTwo.\n\n```\n# no\n\nmore\n```\nEnd"
    document = read_markdown(text)
    assert document.title == "A book"
    assert document.chapters == (
        Chapter("A book", ("A book", "One.")),
        Chapter("Two", ("Two", "Two.", "End")),
    )
    assert titles(read_markdown("One\n===\n\nText.\n\nTwo\n---\n\nText.")) == ["One", "Two"]


def test_markdown_is_read_in_books_as_aloud() -> None:
    text = (
        "# T\n1. **Ann**: Hi.\n   Bob: Ho, `you`.\n1. ![A tree](t.png) [pause 1s] [x](/\u0259/)\n"
        "- [ ] b"
    )
    paragraphs = read_markdown(text).chapters[0].paragraphs
    assert paragraphs == (
        "T",
        "1. Ann: Hi.\nBob: Ho, you.",
        "2. A tree [pause 1s] [x](/\u0259/)",
        "b",
    )
    assert [" ".join(one.split()) for one in paragraphs] == read_aloud(text.encode(), "md").split(
        "\n\n"
    )


def test_texts_are_unicode() -> None:
    assert decode_text("\ufeffa\r\nb".encode()) == "a\nb"
    assert decode_text("a\u00e9".encode("utf-16")) == "a\u00e9"
    with pytest.raises(InvalidDocument, match="byte 1"):
        decode_text(b"a\xe9")


def test_html_is_read_by_its_blocks() -> None:
    document = read_html(
        "<html lang=en><head><title>T &amp; U</title></head><body><nav>Menu</nav><h1>One</h1>"
        "<p>A<br>b <b>c</b>&eacute;<div>d</div><h2>Two</h2>bare<script>x</script><ul><li>e<li>f"
    )
    assert (document.title, document.language) == ("T & U", "en")
    assert document.chapters == (
        Chapter("One", ("One", "A b c\u00e9", "d")),
        Chapter("Two", ("Two", "bare", "e", "f")),
    )


def test_html_is_read_with_the_numbers_of_its_lists() -> None:
    document = read_html(
        "<ol start=4><li><p>a</p><p>more</p><ul><li>x</ul><li><ol><li>b</ol><li value=9>c</ol>"
        "<ol style='list-style: none'><li>d</li></ol><ol start=-x><li>e</ol></ol>"
        "<nav><ol><li></nav><p>f"
    )
    paragraphs = document.chapters[0].paragraphs
    assert paragraphs == ("4. a", "more", "x", "1. b", "9. c", "d", "1. e", "f")


def test_a_book_has_the_chapters_of_its_contents(tmp_path: Path) -> None:
    book = read_epub(write(tmp_path, make_epub()))
    assert (book.title, book.author, book.language) == ("The Small Book", "A. Writer", "en")
    assert titles(book) == ["The Sea", "The Land", "The Sky"]
    assert book.chapters[0].paragraphs == ("I", "The sea is wide & blue.", "Gulls cry.")
    assert book.chapters[1].paragraphs == ("II", "The land is dry.")
    assert is_jpeg(book.cover)


def test_an_older_book_has_another_table_of_contents(tmp_path: Path) -> None:
    package = PACKAGE.replace(
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>',
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>',
    ).replace("<spine>", '<spine toc="ncx">')
    data = make_epub({"OEBPS/book.opf": package, "OEBPS/toc.ncx": NCX, "OEBPS/nav.xhtml": None})
    assert titles(read_epub(write(tmp_path, data))) == ["Sea"]
    no_contents = make_epub({"OEBPS/book.opf": package, "OEBPS/nav.xhtml": None})
    assert titles(read_epub(write(tmp_path, no_contents))) == ["I", "II"]


def test_a_bad_cover_is_left_out(tmp_path: Path) -> None:
    book = read_epub(write(tmp_path, make_epub({"OEBPS/cover.png": b"\x89PNG no picture"})))
    assert book.cover == b""


def test_hidden_fonts_do_not_matter(tmp_path: Path) -> None:
    data = make_epub({"META-INF/encryption.xml": ENCRYPTION.format(FONTS)})
    assert len(read_epub(write(tmp_path, data)).chapters) == 3


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"META-INF/encryption.xml": ENCRYPTION.format(AES)}, "encrypted"),
        ({"META-INF/rights.xml": "<rights/>"}, "protected"),
        ({"META-INF/container.xml": None}, "no file"),
        ({"OEBPS/book.opf": "<package"}, "not XML"),
        ({"OEBPS/book.opf": PACKAGE.replace("<package", LAUGHS + "<package")}, "entities"),
        ({"OEBPS/text/one.xhtml": LAUGHS + ONE}, "entities"),
        ({"OEBPS/nav.xhtml": LAUGHS + NAV}, "entities"),
        ({"OEBPS/text/one.xhtml": None}, "no file"),
        ({"OEBPS/book.opf": PACKAGE.replace("itemref", "none")}, "no pages"),
        ({"OEBPS/text/one.xhtml": b" " * (epub.MAX_ENTRY_BYTES + 1)}, "too large"),
    ],
)
def test_a_bad_book_is_refused(
    tmp_path: Path, changes: dict[str, str | bytes | None], reason: str
) -> None:
    with pytest.raises(InvalidDocument, match=reason):
        read_epub(write(tmp_path, make_epub(changes)))


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    whole = make_epub()
    with pytest.raises(InvalidDocument, match=r"is damaged .*download or export it again"):
        read_epub(write(tmp_path, whole[: len(whole) // 2]))
    place = whole.index(b"OEBPS/text/one.xhtml") + 60
    spoiled = whole[:place] + bytes(byte ^ 0xFF for byte in whole[place : place + 40])
    with pytest.raises(InvalidDocument, match=r"is damaged .*download or export it again"):
        read_epub(write(tmp_path, spoiled + whole[place + 40 :]))


def test_an_encrypted_archive_is_refused(tmp_path: Path) -> None:
    data = bytearray(make_epub())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = -1
        while (start := data.find(mark, start + 1)) >= 0:
            data[start + place] |= 1
    with pytest.raises(InvalidDocument, match="encrypted"):
        read_epub(write(tmp_path, bytes(data)))


def test_all_of_an_archive_together_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(epub, "MAX_TOTAL_BYTES", 1_000)
    file = io.BytesIO(make_epub())
    assert sum(one.file_size for one in zipfile.ZipFile(file).infolist()) > 1_000
    with pytest.raises(InvalidDocument, match="too large"):
        read_epub(write(tmp_path, file.getvalue()))


def test_a_pdf_is_read(tmp_path: Path) -> None:
    document = read_pdf(write(tmp_path, make_pdf("The first page.", "The second one.")))
    assert document.chapters == (Chapter("", ("The first page.", "The second one.")),)
    assert split_paragraphs("A di-\nvided word.\nNew one\ngoes on") == (
        "A divided word.",
        "New one goes on",
    )


def test_a_pdf_without_text_or_with_a_password_is_refused(tmp_path: Path) -> None:
    from pypdf import PdfReader, PdfWriter

    with pytest.raises(InvalidDocument, match="no text"):
        read_pdf(write(tmp_path, make_pdf("", "")))
    with pytest.raises(InvalidDocument, match=r"is damaged .*download or export it again"):
        read_pdf(write(tmp_path, b"%PDF-1.4 nothing"))
    writer = PdfWriter(PdfReader(io.BytesIO(make_pdf("Secret."))))
    writer.encrypt("word", algorithm="RC4-128")
    locked = io.BytesIO()
    writer.write(locked)
    with pytest.raises(InvalidDocument, match="encrypted"):
        read_pdf(write(tmp_path, locked.getvalue()))


def test_documents_have_limits() -> None:
    with pytest.raises(InvalidDocument, match="no text"):
        check_document(Document("", "", "", (Chapter("", ("...", "***")),)))
    tidy = check_document(Document("a\n\tb", "", "", (Chapter("x" * 999, ("one",)),)))
    assert (tidy.title, len(tidy.chapters[0].title)) == ("a b", 300)
    assert find_kind("A.EPUB") == "epub"
    with pytest.raises(InvalidDocument, match=r"\.epub"):
        find_kind("a.docx")


async def test_documents_are_read_in_a_process_of_their_own(tmp_path: Path) -> None:
    reader = DocumentReader()
    book = await reader.read(write(tmp_path, make_epub()), "epub")
    assert titles(book) == ["The Sea", "The Land", "The Sky"]
    assert is_jpeg(book.cover)
    encrypted = write(tmp_path, make_epub({"META-INF/encryption.xml": ENCRYPTION.format(AES)}))
    with pytest.raises(InvalidDocument, match="encrypted"):
        await reader.read(encrypted, "epub")
    silent = write(tmp_path, b"...")
    with pytest.raises(InvalidDocument, match="no text"):
        await reader.read(silent, "txt")


async def test_a_document_that_fills_the_memory_ends_its_reader_alone(tmp_path: Path) -> None:
    # Each character of it takes four bytes, several times over.
    path = tmp_path / "document"
    with path.open("wb") as file:
        file.write("\U0001f600".encode())
        file.truncate(900 << 20)
    with pytest.raises(InvalidDocument, match="memory"):
        await DocumentReader().read(path, "html")
