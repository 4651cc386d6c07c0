"""Small documents for tests: EPUB, PDF."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from PIL import Image

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""

PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Small Book</dc:title>
<dc:creator>A. Writer</dc:creator><dc:language>en</dc:language></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="cover" href="cover.png" media-type="image/png" properties="cover-image"/></manifest>
<spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""

NAV = """<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops">
<body><nav epub:type="toc"><ol><li><a href="text/one.xhtml">The Sea</a></li>
<li><a href="text/one.xhtml#land">The Land</a></li>
<li><a href="text/two%20b.xhtml">The Sky</a></li></ol></nav></body></html>"""

ONE = """<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title>
<style>p {}</style></head><body><h1>I</h1><p>The sea is
wide &amp; blue.</p><p>Gulls <em>cry</em>.</p><h2 id="land">II</h2><p>The land is dry.</p>
<script>alert(1)</script></body></html>"""
TWO = "<html><body><p>The sky is high.</p></body></html>"


def _draw_cover() -> bytes:
    file = io.BytesIO()
    Image.new("RGBA", (40, 60), (200, 30, 30, 255)).save(file, "PNG")
    return file.getvalue()


COVER = _draw_cover()

WHOLE: Mapping[str, str | bytes] = {
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/nav.xhtml": NAV,
    "OEBPS/text/one.xhtml": ONE,
    "OEBPS/text/two b.xhtml": TWO,
    "OEBPS/cover.png": COVER,
}


def make_epub(changes: Mapping[str, str | bytes | None] | None = None) -> bytes:
    """A book of three chapters.

    Args:
        changes: entries that differ; None: they are not there.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**WHOLE, **(changes or {})}.items():
            if content is not None:
                archive.writestr(name, content)
    return file.getvalue()


def make_pdf(*pages: str) -> bytes:
    """A file with a line of text on each page; an empty one has no text."""
    streams = [f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else "" for text in pages]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, stream in enumerate(streams):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    data, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    count, start = len(objects) + 1, len(data)
    return (
        data
        + (
            f"xref\n0 {count}\n0000000000 65535 f \n{table}"
            f"trailer << /Size {count} /Root 1 0 R >>\n"
            f"startxref\n{start}\n%%EOF\n"
        ).encode()
    )
