"""The page's tab that reads along, as tests use it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from playwright.sync_api import FilePayload, Locator, Page

from .speech_page import POLL_MS, SPEECH_DEADLINE_MS, SpeechPage

# Each word as it is heard, with the seconds since the page last looked, and each as it is marked.
NOTE = """
() => {
  window.heard = [];
  window.marked = [];
  const { reader } = window.cantata;
  let looked = performance.now();
  reader.addEventListener("place", () => {
    const since = (performance.now() - looked) / 1000;
    looked = performance.now();
    const { word, book } = reader;
    if (word === null || word.from === window.heard.at(-1)?.[0]) return;
    window.heard.push([word.from, book.text.slice(word.from, word.to), since]);
    const [mark] = CSS.highlights.get("cantata-word") ?? [];
    window.marked.push(String(mark ?? ""));
  });
}
"""
# In the middle of a word, by its place in the text.
CENTRE_OF = """
(place) => {
  const { blocks } = window.cantata.reader.book;
  const index = blocks.findIndex(({ to }) => to > place);
  const node = document.querySelectorAll(".leaf :is(p, h3)")[index].firstChild;
  node.parentElement.scrollIntoView({ block: "center" });
  const range = document.createRange();
  range.setStart(node, place - blocks[index].from);
  range.setEnd(node, place - blocks[index].from + 3);
  const { left, top, width, height } = range.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
}
"""
DROP_FOLDER = """
(panel) => {
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([], "books"));
  DataTransferItem.prototype.webkitGetAsEntry = () => ({ isDirectory: true });
  panel.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}
"""


@dataclass(frozen=True)
class ReadPage:
    page: Page

    def open(self, url: str) -> None:
        SpeechPage(self.page).open(url)
        self.show()

    def show(self) -> None:
        SpeechPage(self.page).tab("Read")

    def press(self, name: str) -> None:
        SpeechPage(self.page).press(name)

    def paste(self, text: str) -> None:
        self.page.get_by_label("Or paste a text").fill(text)
        self.press("Open this text")

    def choose(self, name: str, content: bytes) -> None:
        file = FilePayload(name=name, mimeType="", buffer=content)
        self.page.get_by_label("Drop a file here").set_input_files(file)

    def drop_folder(self) -> None:
        self.page.locator("#cantata-read").evaluate(DROP_FOLDER)

    @property
    def pages(self) -> Locator:
        return self.page.get_by_role("region", name="Pages")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("region", name="Reader").get_by_role("status")

    def blocks(self) -> list[tuple[str, str]]:
        """What stands on the pages: (H3 or P, text)."""
        found = self.page.locator(".leaf :is(p, h3)")
        return [
            (str(name), str(text))
            for name, text in found.evaluate_all("all => all.map(o => [o.nodeName, o.textContent])")
        ]

    def wait_for(self, *states: str) -> None:
        self.page.wait_for_function(
            "states => states.includes(window.cantata.reader?.state)",
            arg=[*states],
            timeout=SPEECH_DEADLINE_MS,
            polling=POLL_MS,
        )

    def wait_past(self, place: int) -> None:
        """Until a word beyond that place is heard."""
        self.page.wait_for_function(
            "place => window.cantata.reader?.place > place",
            arg=place,
            timeout=SPEECH_DEADLINE_MS,
            polling=POLL_MS,
        )

    def note(self) -> None:
        self.page.evaluate(NOTE)

    def heard(self) -> list[tuple[int, str]]:
        """Each word since `note`: its place in the text, and the word."""
        return [(int(place), str(word)) for place, word, _ in self.page.evaluate("window.heard")]

    def looked_after_s(self) -> list[float]:
        """For each word of `heard`: the time since the page had looked for words before it. A busy
        page passes over the words in between."""
        return [float(since) for *_, since in self.page.evaluate("window.heard")]

    def marked(self) -> list[str]:
        return [str(word) for word in self.page.evaluate("window.marked")]

    def place(self) -> int:
        return int(self.page.evaluate("window.cantata.reader.place"))

    def held(self) -> Mapping[str, Any]:
        """Of the sound, seconds; of the words, how many."""
        return dict(self.page.evaluate("window.cantata.reader.held"))

    def click_word(self, place: int) -> None:
        x, y = self.page.evaluate(CENTRE_OF, place)
        self.page.mouse.click(x, y)


def epub(chapters: Mapping[str, str], *, padding: int = 0, encrypted: str = "") -> bytes:
    """A book.

    Args:
        chapters: XHTML bodies by file name, in their order.
        padding: bytes of a picture beside them.
        encrypted: the algorithm by which its first chapter is said to be encrypted.
    """
    items = "".join(f'<item id="i{i}" href="{name}"/>' for i, name in enumerate(chapters))
    order = "".join(f'<itemref idref="i{i}"/>' for i in range(len(chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Mill</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        file.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        if encrypted:
            file.writestr(
                "META-INF/encryption.xml",
                '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
                f'<EncryptedData><EncryptionMethod Algorithm="{encrypted}"/></EncryptedData>'
                "</encryption>",
            )
        file.writestr("OEBPS/cover.jpg", bytes(padding), zipfile.ZIP_STORED)
        file.writestr("OEBPS/book.opf", package)
        for name, body in chapters.items():
            page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{body}</body></html>'
            file.writestr(f"OEBPS/{unquote(name)}", page)
    return made.getvalue()
