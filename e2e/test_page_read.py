"""The tab that reads along: the word that is heard is marked, a word can be chosen, files are
opened, and a long text takes no more memory than a short one."""

from __future__ import annotations

import io
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, WebSocketRoute, expect

from .read_page import ReadPage, epub
from .server import Server
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SENTENCE = "Two brothers kept the mill, and each of them thought it was his own. "
LONG = "\n\n".join(["The ferry leaves at seven.", *[(SENTENCE * 4).strip()] * 3])
HEBREW = "הספינה יוצאת בשבע. 2 אחים גרו בטחנה."
BOOK_WORDS = 50_000
AHEAD_SECONDS = 20
"""What the reader asks for ahead of what is heard."""
PIECE_SECONDS = 40
"""No single piece takes longer."""
STORAGE_IS_FULL = """
Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
"""
NOTE_CONTROLS = """
() => {
  window.handled = new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      observer.disconnect();
      resolve(window.cantata.reader !== undefined);
    });
    observer.observe(document.querySelector("#cantata-read"), { childList: true });
  });
}
"""


MIN_WORD_S = 0.07


@pytest.fixture
def read_page(page: Page, server: Server) -> ReadPage:
    SpeechPage(page).wait_until_ready()
    return ReadPage(page)


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_a_long_text_is_read_along_from_any_word_and_by_keys(read_page: ReadPage) -> None:
    page = read_page.page
    speech_page = SpeechPage(page)
    along = page.get_by_role("button", name="Read along")
    speech_page.write("Short.")
    expect(along).to_be_hidden()
    speech_page.write(LONG)
    along.click()
    read_page.wait_for("playing")
    read_page.note()

    chosen = LONG.index("each of them", 200)
    read_page.click_word(chosen)
    read_page.wait_past(chosen + 30)
    heard = read_page.heard()
    first = next(i for i, (place, _) in enumerate(heard) if place >= chosen)
    assert heard[first] == (chosen, "each"), "it reads from the word that was chosen"
    assert all(read_page.marked()[i] == heard[i][1] for i in range(first, len(heard)))

    page.keyboard.press("Space")
    read_page.wait_for("paused")
    paused = read_page.place()
    page.keyboard.press("ArrowRight")
    assert read_page.place() == LONG.index("Two", paused)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert read_page.place() < paused
    assert LONG[read_page.place() :].startswith("Two brothers")

    follow = page.get_by_role("button", name="Follow")
    page.mouse.wheel(0, 50)
    expect(follow).to_have_attribute("aria-pressed", "false")
    follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")

    bar = page.get_by_label("Place in the text")
    box = bar.bounding_box()
    assert box is not None
    bar.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    assert read_page.place() / len(LONG) == pytest.approx(0.5, abs=0.05)

    place = read_page.place()
    page.reload()
    speech_page.wait_until_ready()
    read_page.show()
    page.get_by_role("button", name="Go on with “The ferry").click()
    read_page.wait_for("playing")
    assert read_page.place() >= place, "the place outlasts the page"


def test_speed_and_volume_change_while_it_reads_and_to_its_end(read_page: ReadPage) -> None:
    text = "One. " + SENTENCE
    read_page.show()
    read_page.paste(text)
    read_page.note()
    read_page.press("Play")
    read_page.wait_for("playing")
    read_page.page.get_by_label("Speed").last.select_option("3")
    read_page.page.get_by_label("Volume").last.fill("0.3")
    assert read_page.page.evaluate("window.cantata.reader.going"), "it goes on at the new speed"
    read_page.wait_for("done")
    expect(read_page.status).to_have_text("This is the end.")
    assert read_page.heard()[-1][0] >= text.index("his"), "to its last words"
    kept = read_page.page.evaluate("Object.values(localStorage).join()")
    assert '"speed":3,"volume":0.3' in kept


@pytest.mark.thorough
def test_a_book_takes_no_more_memory_than_a_page(read_page: ReadPage) -> None:
    """It asks for a little more than what is heard, and forgets what was."""
    page = read_page.page
    sent: list[int] = []

    def note(frame: str | bytes) -> None:
        if isinstance(frame, str) and '"input.text"' in frame:
            sent.append(len(frame))

    page.on("websocket", lambda socket: socket.on("framesent", note))
    words = len(words_of(SENTENCE))
    book = "\n\n".join([SENTENCE * 5] * (BOOK_WORDS // (5 * words) + 1))
    read_page.show()
    read_page.choose("long.txt", book.encode())
    expect(page.get_by_role("heading", name="long")).to_be_visible()
    read_page.press("Play")
    read_page.wait_past(200)
    held = read_page.held()
    assert held["seconds"] <= AHEAD_SECONDS + PIECE_SECONDS
    assert held["words"] < 400
    assert sum(sent) < 3_000 < len(book)
    # From the middle, too, at once.
    slider = page.get_by_label("Place in the text")
    slider.fill("500")
    slider.dispatch_event("change")
    read_page.wait_for("playing")
    read_page.wait_past(len(book) // 2 - 100)
    assert sum(sent) < 6_000
    total = page.locator("[data-role=read-total]").inner_text()
    hours = int(total.split(":")[0]) if total.count(":") == 2 else 0
    assert 3 <= hours <= 8, total


def test_a_broken_connection_loses_no_word_and_repeats_none(
    browser_page: Page, server: Server
) -> None:
    breaks: list[int] = []

    def break_once(route: WebSocketRoute) -> None:
        upstream = route.connect_to_server()

        def forward(message: str | bytes) -> None:
            route.send(message)
            if isinstance(message, bytes):
                breaks.append(len(message))
                if len(breaks) == 2:
                    route.close(code=1011)

        upstream.on_message(forward)

    browser_page.route_web_socket("**/v1/audio/speech/stream", break_once)
    read_page = ReadPage(browser_page)
    read_page.open(server.url)
    read_page.paste(SENTENCE)
    read_page.note()
    read_page.press("Play")
    read_page.wait_for("done")
    assert len(breaks) > 2
    heard = read_page.heard()
    places = [place for place, _ in heard]
    assert places == sorted(set(places)), "no word is repeated"
    starts = [word.start() for word in re.finditer(r"\w+", SENTENCE)]
    looked_s = read_page.looked_after_s()[1:]
    for (before, place), gap_s in zip(pairwise(places), looked_s, strict=True):
        missed = starts.index(place) - starts.index(before) - 1
        assert missed * MIN_WORD_S <= gap_s, f"{missed} words before {place} are lost"
    assert (heard[0][1], heard[-1][1]) == (words_of(SENTENCE)[0], words_of(SENTENCE)[-1])


CHAPTERS = {
    "b%20b.xhtml": "<h2>Chapter</h2><p>Is second by name.</p>",
    "a.xhtml": "<p>End.</p>",
}
SET_CHAPTERS = "H3 Chapter|P Is second by name.|P End."


@pytest.mark.parametrize(
    ("name", "content", "blocks"),
    [
        (
            "a.txt",
            b"One line\r\nand its end.\r\n\r\nTwo caf\xe9s.",
            "P One line and its end.|P Two cafés.",
        ),
        (
            "a.md",
            b"---\ntitle: x\n---\n# The *mill*\n\nSee [the sea](http://a.b) and **bold**.\n\n"
            b"```\ncode()\n```\n- first\n- second_one\n\n1. one\n1. two\n\n"
            b"Fish &amp; chips[^1] for &pound;5.\n\n"
            b"[^1]: A &lt;dish&gt;.\n[^two]: Money.\n",
            "H3 The mill|P See the sea and bold.|P first|P second_one|P 1. one|P 2. two"
            "|P Fish & chips for £5.|P A <dish>.|P Money.",
        ),
        (
            "a.html",
            b"<head><style>p{}</style></head><nav>menu</nav><h1>The <i>mill</i></h1>"
            b"<p>One&amp;two<br>three</p>loose<ul><li>four</ul>"
            b"<ol start=5><li>five<li><p>six</ol><script>x()</script>",
            "H3 The mill|P One&two three|P loose|P four|P 5. five|P 6. six",
        ),
        ("a.epub", epub(CHAPTERS), SET_CHAPTERS),
        pytest.param(
            "a.epub",
            epub(CHAPTERS, padding=40_000_000),
            SET_CHAPTERS,
            marks=pytest.mark.thorough,
        ),
    ],
    ids=["txt", "md", "html", "epub", "epub of 40 MB"],
)
def test_files_are_set_as_pages(
    read_page: ReadPage, name: str, content: bytes, blocks: str
) -> None:
    read_page.show()
    read_page.choose(name, content)
    expect(read_page.pages).to_be_visible()
    assert read_page.blocks() == [tuple(block.split(" ", 1)) for block in blocks.split("|")]


def test_its_controls_come_together_with_what_handles_them(read_page: ReadPage) -> None:
    read_page.page.evaluate(NOTE_CONTROLS)
    read_page.show()
    assert read_page.page.evaluate("handled"), "a file that is chosen at once would be lost"


def test_what_cannot_be_read_is_refused_with_what_to_do(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(STORAGE_IS_FULL)
    read_page = ReadPage(browser_page)
    read_page.open(server.url)
    drm = epub(
        {"a.xhtml": "<p>Words.</p>"}, encrypted="http://www.w3.org/2001/04/xmlenc#aes128-cbc"
    )
    for name, content, told in [
        ("a.epub", drm, "Choose one without DRM"),
        ("a.epub", b"PK nothing", "Download it again"),
        ("a.pdf", b"%PDF", "“Audiobooks”, below, takes it"),
        ("a.docx", b"PK", "Choose a file of these kinds: .txt"),
        ("a.txt", b" \n ", "no words"),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is no text, whatever its name says"),
        ("a.txt", "Words.".encode("utf-16-le"), "Save it as UTF-8, or choose another file."),
        ("a.txt", b"x" * 10_000_000, "Open a part of it"),
    ]:
        read_page.choose(name, content)
        expect(read_page.status).to_contain_text(told)
        expect(read_page.status).to_have_attribute("data-error", "true")
    read_page.drop_folder()
    expect(read_page.status).to_contain_text("Drop one file of it")
    read_page.paste("word " * 140_000)
    expect(read_page.status).to_have_text(
        "The text has 700,000 characters; the reader takes 600,000 at a time. Open a part of it. "
        "Save it as a file: “Audiobooks”, on the tab “Read”, takes longer ones."
    )
    expect(read_page.pages).to_be_hidden()
    obfuscated = epub({"a.xhtml": "<p>Words.</p>"}, encrypted="http://www.idpf.org/2008/embedding")
    read_page.choose("a.epub", obfuscated)
    expect(read_page.pages).to_have_text(re.compile("Words"))
    expect(read_page.status).to_contain_text("storage is full or off")
    expect(browser_page.get_by_role("heading", name="The Mill")).to_be_visible()


def test_each_paragraph_runs_the_way_of_its_script(read_page: ReadPage) -> None:
    page = read_page.page
    read_page.show()
    field = page.get_by_label("Or paste a text")
    field.fill(HEBREW)
    expect(field).to_have_css("direction", "rtl")
    read_page.paste(f"{HEBREW}\n\n{SENTENCE}")
    hebrew, english = page.locator(".leaf p").all()
    expect(hebrew).to_have_css("direction", "rtl")
    expect(english).to_have_css("direction", "ltr")


def test_it_is_saved_under_its_first_words(read_page: ReadPage, tmp_path: Path) -> None:
    text = "The gate is open.\n\nTwo horses came."
    read_page.show()
    read_page.paste(text)
    files: dict[str, Any] = {}
    for kind in ("mp3", "wav", "srt"):
        read_page.page.get_by_label("Download as").last.select_option(kind)
        with read_page.page.expect_download(timeout=SPEECH_DEADLINE_MS) as download:
            read_page.press("Download")
        assert download.value.suggested_filename == f"The gate is open Two horses came.{kind}"
        files[kind] = Path(download.value.path()).read_bytes()
    sound, rate = soundfile.read(io.BytesIO(files["wav"]))
    seconds = len(sound) / rate
    assert 1.5 < seconds < 8
    assert float(np.abs(sound).max()) > 0.05
    assert abs(soundfile.info(io.BytesIO(files["mp3"])).duration - seconds) < 1.5
    ends = re.findall(r"--> 00:00:(\d\d),(\d{3})", files["srt"].decode())
    assert len(ends) == 2
    assert 0 < seconds - (int(ends[-1][0]) + int(ends[-1][1]) / 1000) < 1.5
