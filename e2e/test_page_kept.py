"""What the page keeps: the text and the settings over a reload, and links that fill it."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Dialog, Locator, Page, expect

from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

# As where cookies are blocked.
REFUSE_STORAGE = """
for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
  Object.defineProperty(window, name, {
    get() {
      throw new DOMException("cookies are blocked", "SecurityError");
    },
  });
}
"""
TEXT = 'With "quotes" & 100% +plus.\nLine two: caf\u00e9, \u738b\u5c0f\u660e, \U0001f3b5 #end?'


def settings(speech_page: SpeechPage) -> None:
    speech_page.page.get_by_text("Settings", exact=True).click()


def notice(page: Page) -> Locator:
    return page.locator("[data-role=link-notice]")


def read_clipboard(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_text_and_settings_survive_a_reload(browser_page: Page, server: Server) -> None:
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    settings(speech_page)
    speech_page.write(TEXT)
    browser_page.get_by_label("Voice", exact=True).select_option("ruby")
    browser_page.get_by_label("Speed").fill("1.5")
    browser_page.get_by_label("Download as").select_option("flac")
    chosen = speech_page.chosen()
    browser_page.reload()
    speech_page.wait_until_ready()
    settings(speech_page)
    expect(speech_page.text).to_have_value(TEXT)
    assert speech_page.chosen() == chosen
    assert (chosen["voice"], chosen["speed"]) == ("ruby", 1.5)
    expect(browser_page.get_by_label("Download as")).to_have_value("flac")
    expect(browser_page.locator("[data-role=speed]")).to_have_text("1.50\u00d7")

    speech_page.press("A fox")
    fox = speech_page.text.input_value()
    browser_page.reload()
    expect(speech_page.text).to_have_value(fox)


def test_a_browser_that_keeps_nothing_speaks_all_the_same(
    browser_page: Page, server: Server
) -> None:
    browser_page.add_init_script(REFUSE_STORAGE)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    expect(browser_page.locator("[data-role=takes-status]")).to_have_text(
        "This browser keeps no takes: they last until you close the page."
    )
    browser_page.get_by_label("Voice", exact=True).select_option("ben")
    speech_page.write("It works.")
    speech_page.press("Speak")
    speech_page.wait_for_state("done")


def test_what_was_kept_and_is_damaged_is_ignored(browser_page: Page, server: Server) -> None:
    kept = {"settings": json.dumps({"speed": "99", "voice": 7}), "text": "{"}
    for name, value in kept.items():
        named = json.dumps([f"cantata {server.url}/ {name}", value])
        browser_page.add_init_script(f"localStorage.setItem(...{named})")
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    chosen = speech_page.chosen()
    assert (chosen["voice"], chosen["speed"]) == ("clara", 1.0)
    assert "harbour" in speech_page.text.input_value()


def test_a_copied_link_fills_another_browsers_page(browser_page: Page, server: Server) -> None:
    """The same samples come of it."""
    page = browser_page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    speech_page = SpeechPage(page)
    speech_page.open(f"{server.url}?utm_source=x#part")
    settings(speech_page)
    speech_page.write(TEXT)
    page.get_by_label("Voice", exact=True).select_option("ewan")
    page.get_by_label("Speed").fill("3.75")
    speech_page.press("Copy a link to this text")
    expect(page.locator("[data-role=share-status]")).to_have_text("The link is copied.")
    link = read_clipboard(page)
    asked = parse_qs(urlsplit(link).query)
    assert (asked["text"], asked["voice"], asked["speed"]) == ([TEXT], ["ewan"], ["3.75"])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    played = speech_page.played()

    assert page.context.browser is not None
    with page.context.browser.new_context() as elsewhere:
        there = SpeechPage(elsewhere.new_page())
        there.open(link)
        expect(there.text).to_have_value(TEXT)
        assert there.chosen() == speech_page.chosen()
        expect(notice(there.page)).to_be_hidden()
        assert "text=" not in there.page.url
        there.press("Speak")
        there.wait_for_state("done")
        np.testing.assert_array_equal(there.played(), played)
        # Later changes are not overwritten by the link.
        there.write("Changed.")
        there.page.reload()
        expect(there.text).to_have_value("Changed.")


def test_a_link_cannot_set_what_is_not_offered(browser_page: Page, server: Server) -> None:
    page = browser_page
    dialogs: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    markup = "<img src=x onerror=alert(1)>"
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.write("My own text.")
    asked = {"text": markup, "voice": markup, "model": "none", "speed": "1e9", "other": markup}
    speech_page.open(f"{server.url}?{urlencode(asked)}")
    expect(speech_page.text).to_have_value(markup)
    expect(notice(page)).to_contain_text(f"the voice “{markup}”, which is not offered.")
    expect(notice(page)).to_contain_text("Valid: clara, ben")
    expect(notice(page)).to_contain_text("the model “none”")
    expect(notice(page)).to_contain_text("the speed “1e9”")
    expect(notice(page)).to_contain_text("Valid: 0.25 to 4 in steps of 0.05.")
    assert page.locator(".cantata img").count() == 0
    chosen = speech_page.chosen()
    assert (chosen["voice"], chosen["speed"]) == ("clara", 1.0)
    speech_page.press("Bring my text back")
    expect(speech_page.text).to_have_value("My own text.")
    expect(notice(page)).to_be_hidden()
    for asked in ({"voice": "BEN", "speed": "NaN"}, {"voice": "x" * 5000}):
        speech_page.open(f"{server.url}?{urlencode(asked)}")
        expect(notice(page)).to_be_visible()
        assert len(notice(page).inner_text()) < 300
        expect(page.get_by_label("Voice", exact=True)).to_have_value("ben")
        speech_page.press("Close")
        expect(notice(page)).to_be_hidden()
    assert dialogs == []


def test_what_a_link_leaves_empty_is_not_asked_for(browser_page: Page, server: Server) -> None:
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write("My own text.")
    speech_page.open(f"{server.url}?text=&voice=&model=&speed=&seed=&instructions=")
    expect(speech_page.text).to_have_value("My own text.")
    expect(notice(browser_page)).to_be_hidden()
    speech_page.open(f"{server.url}?voice=ben&model=")
    expect(browser_page.get_by_label("Voice", exact=True)).to_have_value("ben")
    expect(notice(browser_page)).to_be_hidden()


def test_a_link_is_copied_over_plain_http_and_a_long_text_says_that_it_is_left_out(
    browser_page: Page, server: Server
) -> None:
    page = browser_page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    page.evaluate("window.clipboard = navigator.clipboard")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    speech_page.write("\u738b" * 5000)
    speech_page.press("Copy a link to this text")
    expect(page.locator("[data-role=share-status]")).to_contain_text("too long for a link")
    link = str(page.evaluate("window.clipboard.readText()"))
    assert parse_qs(urlsplit(link).query).keys() >= {"voice", "speed"}
    assert "text" not in parse_qs(urlsplit(link).query)
    expect(page.get_by_role("button", name="Copy a link to this text")).to_be_focused()


@pytest.mark.thorough
def test_three_tabs_at_once_keep_each_others_takes(browser_page: Page, server: Server) -> None:
    """In one browser: each hears its own sentence, and none plays what another has cleared."""
    context = browser_page.context
    pages = [SpeechPage(page) for page in (browser_page, context.new_page(), context.new_page())]
    sentences = ["One of us is first.", "Two is a pair.", "Three is a crowd of tabs."]
    for speech_page, sentence in zip(pages, sentences, strict=True):
        speech_page.open(server.url)
        speech_page.write(sentence)
    for speech_page in pages:
        speech_page.page.evaluate("document.querySelector('[data-role=speak]').click()")
    for speech_page, sentence in zip(pages, sentences, strict=True):
        speech_page.wait_for_state("done")
        answer = server.speech(input=sentence, response_format="pcm", **speech_page.chosen())
        played = np.frombuffer(answer.content, dtype="<i2")
        np.testing.assert_array_equal(speech_page.played(), played)
        expect(speech_page.page.locator(".takes q").get_by_text(sentence)).to_be_visible()
    first, second, _ = pages
    second.page.reload()
    second.wait_until_ready()
    takes = second.page.locator(".takes q")
    expect(takes).to_have_count(3)
    assert set(takes.all_inner_texts()) == set(sentences)
    first.press("Clear the takes")
    first.press("Clear")
    expect(first.page.locator(".takes q")).to_have_count(0)
    second.page.locator(".takes").get_by_role("button", name="Play Clara").first.click()
    expect(second.page.locator(".takes")).to_contain_text("None yet")


@pytest.mark.thorough
def test_too_many_characters_are_refused_with_what_takes_them(speech_page: SpeechPage) -> None:
    status = speech_page.status()
    speech_page.write("word " * 60_000)
    speech_page.press("Speak")
    expect(status).to_contain_text("The text has 300,000 characters")
    expect(status).to_contain_text("“Read along” reads longer ones.")
    expect(status).to_have_attribute("data-error", "true")
    expect(speech_page.page.get_by_role("button", name="Read along")).to_be_visible()
    speech_page.write("word " * 200_000)
    speech_page.press("Speak")
    expect(status).to_contain_text("The text has 1,000,000 characters")
    expect(status).to_contain_text(
        "“Read along” reads at most 600,000. Save it as a file: “Audiobooks”"
    )


@pytest.mark.thorough
def test_audiobooks_are_named_only_where_there_are_some(speech_page: SpeechPage) -> None:
    refusal = {"error": {"message": "no jobs here", "code": "not_found"}}
    speech_page.page.route("**/v1/jobs", lambda route: route.fulfill(status=404, json=refusal))
    speech_page.write("word " * 200_000)
    with speech_page.page.expect_response("**/v1/jobs"):
        speech_page.press("Speak")
    expect(speech_page.status()).to_contain_text("reads at most 600,000.")
    expect(speech_page.status()).not_to_contain_text("Audiobooks")
