"""Audiobooks on the tab that reads: a document is spoken by the server in the background, and its
files are in the browser's downloads."""

from __future__ import annotations

import zipfile
from pathlib import Path

import av
import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from .read_page import ReadPage
from .server import Server
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

BOOK = b"# The Sea\n\nAlice: Is it far?\n\nBob: Nobody asked.\n\n# The Island\n\nThey saw it."
LONG = ("The ferry leaves at seven, and nobody waits for it. " * 400).encode()


@pytest.fixture
def read_page(page: Page, server: Server) -> ReadPage:
    SpeechPage(page).wait_until_ready()
    read_page = ReadPage(page)
    read_page.show()
    return read_page


def find_section(page: Page) -> Locator:
    return page.get_by_role("region", name="Audiobooks")


def find_card(page: Page, title: str) -> Locator:
    books = find_section(page).get_by_role("list", name="Audiobooks")
    return books.locator("> li").filter(has_text=title)


def choose(page: Page, name: str, content: bytes) -> None:
    file = FilePayload(name=name, mimeType="", buffer=content)
    find_section(page).get_by_label("Drop a document here").set_input_files(file)


def begin(page: Page) -> None:
    SpeechPage(page).press("Make an audiobook")


def download(page: Page, card: Locator, name: str, folder: Path) -> Path:
    link = card.get_by_label(f"Download {name}")
    link.wait_for(timeout=SPEECH_DEADLINE_MS)
    with page.expect_download(timeout=SPEECH_DEADLINE_MS) as downloading:
        link.click()
    assert downloading.value.suggested_filename == name
    path = folder / name
    downloading.value.save_as(path)
    return path


def test_a_document_becomes_an_audiobook(read_page: ReadPage, tmp_path: Path) -> None:
    page = read_page.page
    section = find_section(page)
    begin(page)
    expect(section.get_by_role("status")).to_contain_text("Choose a document")
    choose(page, "sea.md", BOOK)
    section.get_by_label("Voices of speakers").fill("Alice: ruby")
    begin(page)
    expect(section.get_by_role("status")).to_contain_text("is no speaker with a voice")
    section.get_by_label("Voices of speakers").fill("Alice=ruby, Bob=ben")
    section.get_by_label("Title").fill("Out at Sea")
    section.get_by_label("Captions").select_option("srt")
    begin(page)
    expect(section.get_by_role("status")).to_contain_text("“Out at Sea” has begun: 5 sentences")
    card = find_card(page, "Out at Sea")
    book = download(page, card, "out-at-sea.m4b", tmp_path)
    with av.open(str(book)) as sound:
        chapters = {str(one["metadata"]["title"]) for one in sound.chapters() if one["metadata"]}
        assert {"The Sea", "The Island"} <= chapters
    captions = download(page, card, "out-at-sea.srt", tmp_path).read_text("utf-8")
    assert "Nobody asked." in captions
    assert "Bob" not in captions

    # The server keeps it: it is there for a page that comes later.
    page.reload()
    SpeechPage(page).wait_until_ready()
    read_page.show()
    card.get_by_role("button", name="Files of").click()
    expect(card.get_by_label("Download out-at-sea.m4b")).to_be_visible()
    card.get_by_role("button", name="Delete").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)


def test_the_text_that_is_read_becomes_a_book_that_is_read_along(
    read_page: ReadPage, tmp_path: Path
) -> None:
    page = read_page.page
    read_page.choose("The Mill.md", b"# One\n\nIt turns.\n\n# Two\n\nIt stops.")
    expect(read_page.pages).to_be_visible()
    find_section(page).get_by_label("Make", exact=True).select_option("epub")
    expect(find_section(page).get_by_label("Captions")).to_be_hidden()
    begin(page)
    card = find_card(page, "The Mill")
    book = download(page, card, "the-mill.epub", tmp_path)
    with zipfile.ZipFile(book) as archive:
        names = archive.namelist()
        assert {"EPUB/c01.smil", "EPUB/c02.m4a"} <= set(names)
        assert b"It stops." in archive.read("EPUB/c02.xhtml")


def test_a_book_gets_on_in_sight_and_is_cancelled(read_page: ReadPage) -> None:
    page = read_page.page
    choose(page, "ferry.txt", LONG)
    find_section(page).get_by_label("Title").fill("The Ferry")
    begin(page)
    card = find_card(page, "The Ferry")
    bar = card.get_by_role("progressbar")
    expect(bar).to_have_attribute("max", "400")
    page.wait_for_function(
        "bar => bar.value >= 2", arg=bar.element_handle(), timeout=SPEECH_DEADLINE_MS
    )
    expect(card).to_contain_text("of 400 sentences")
    card.get_by_role("button", name="Cancel").click()
    expect(card).to_contain_text("Cancelled.")
    expect(bar).to_be_hidden()
    expect(card.get_by_role("button", name="Delete")).to_be_visible()


def test_a_bad_document_is_refused_with_the_reason(read_page: ReadPage) -> None:
    page = read_page.page
    choose(page, "damaged.epub", b"PK no book")
    begin(page)
    expect(find_section(page).get_by_role("status")).to_contain_text("The EPUB is damaged")
    choose(page, "another.txt", b"Words.")
    expect(find_section(page).get_by_role("status")).to_be_empty()
