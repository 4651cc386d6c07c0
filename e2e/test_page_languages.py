"""The page in other languages than English, on a phone, where long words are in the way."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from cantata_web.messages import read_messages

from .server import Server
from .speech_page import SpeechPage
from .test_page_layout import (
    CROWDED_LABELS,
    CROWDED_TABS,
    CUT_MENUS,
    EDGE_PX,
    FINGER_PX,
    PHONE,
    SMALL_TARGETS,
    UNFOLD,
)

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

# What stands on the page or names a control, as the messages' keys are written.
SHOWN = """
() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    if (walker.currentNode.parentElement.checkVisibility()) found.push(walker.currentNode.data);
  }
  for (const one of document.querySelectorAll("[aria-label], [placeholder]")) {
    found.push(one.ariaLabel ?? "", one.placeholder ?? "");
  }
  return found.map((text) => text.trim().replace(/\\s+/g, " "));
}
"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
NAMES = {"whisper"}
"""Models' names that are also texts of the page: the server's names stay as they are."""
OPEN_PANEL = "[role=tabpanel]:not([hidden]) section"


@pytest.fixture(params=["de-AT", "ja"])
def foreign_page(
    request: pytest.FixtureRequest, browser: Browser, server: Server
) -> Iterator[Page]:
    """On a phone of another language. No script of the page may throw."""
    context = browser.new_context(locale=request.param, viewport=PHONE)
    page = context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    SpeechPage(page).open(server.url)
    yield page
    context.close()
    assert thrown == []


@pytest.mark.thorough(every=2)
def test_each_tab_is_in_the_browsers_language_and_fits_a_phone(foreign_page: Page) -> None:
    page = foreign_page
    language = str(page.evaluate("document.documentElement.lang"))
    assert language in ("de", "ja")
    texts = read_messages(language).texts
    english = {text for text, message in texts.items() if text != message}
    for tab in page.locator("[role=tab]").all():  # hidden ones, too
        tab.evaluate("tab => tab.click()")
        expect(page.locator(OPEN_PANEL).first).to_be_visible()
        same = NAMES | {str(text) for text in texts.values()}
        left = english & set(page.evaluate(SHOWN)) - same
        assert left == set(), tab.inner_text()
        assert page.evaluate(TOO_WIDE) == 0, tab.inner_text()
        assert page.evaluate(SMALL_TARGETS, FINGER_PX) == []
    assert page.evaluate(CROWDED_TABS) == []


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("width", [320, 390])
@pytest.mark.parametrize("language", ["en", "de", "es", "fr"])
def test_labels_fit_what_they_stand_on(
    page: Page, server: Server, language: str, width: int
) -> None:
    """Those of Japanese and Chinese are shorter."""
    page.set_viewport_size({**PHONE, "width": width})
    SpeechPage(page).open(f"{server.url}/?lang={language}")
    for tab in page.get_by_role("tab").all():
        tab.click()
        expect(page.locator(OPEN_PANEL).first).to_be_visible()
        page.evaluate(UNFOLD)
        assert page.evaluate(CROWDED_LABELS, EDGE_PX) == [], tab.inner_text()
        assert page.evaluate(CUT_MENUS) == [], tab.inner_text()
        assert page.evaluate(TOO_WIDE) == 0, tab.inner_text()
    assert page.evaluate(CROWDED_TABS) == []
    assert page.get_by_role("tablist").evaluate("one => one.scrollWidth - one.clientWidth") == 0


def test_it_speaks_and_counts_in_german_and_returns_to_english(
    browser_page: Page, server: Server
) -> None:
    speech_page = SpeechPage(browser_page)
    speech_page.open(f"{server.url}/?lang=de")
    expect(browser_page.locator("[data-role=server]")).to_contain_text("Stimmen")
    browser_page.get_by_role("textbox", name="Text zum Sprechen").fill("The gate is open.")
    with speech_page.turn():
        speech_page.press("Sprechen")
    expect(speech_page.status("Wiedergabe")).to_contain_text("Fertig.")
    browser_page.get_by_text("Erster Ton nach").click()
    expect(browser_page.locator("[data-meter=buffer]")).to_have_text("0,0 s")

    browser_page.get_by_role("link", name="English").click()
    speech_page.wait_until_ready()
    expect(browser_page.locator("html")).to_have_attribute("lang", "en")
    expect(speech_page.text).to_have_value("The gate is open.")
    browser_page.reload()
    speech_page.wait_until_ready()
    expect(browser_page.locator("[data-role=server]")).to_contain_text("Ready")
