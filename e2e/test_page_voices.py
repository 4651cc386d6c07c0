"""The tab with a card for each voice."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, Request, Route, expect

from .conftest import SHIPPED
from .server import Server
from .speech_page import POLL_MS, SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]


def test_a_text_is_heard_in_every_voice_and_one_is_used(browser_page: Page, server: Server) -> None:
    asked: list[dict[str, str]] = []

    def direct(route: Route) -> None:
        listed = route.fetch().json()
        listed["models"] = [one for one in listed["models"] if one["id"] == SHIPPED]
        listed["models"][0]["capabilities"]["instructions"] = True
        route.fulfill(json=listed)

    def only_own(route: Route) -> None:
        listed = route.fetch().json()
        listed["voices"] = [one for one in listed["voices"] if one["model"] == SHIPPED]
        route.fulfill(json=listed)

    def note(request: Request) -> None:
        if request.url.endswith("/v1/audio/speech"):
            asked.append(json.loads(request.post_data or "{}"))

    def without_words(route: Route) -> None:
        body = json.loads(route.request.post_data or "{}")
        body.pop("instructions", None)  # the shipped voice takes none
        route.continue_(post_data=body)

    browser_page.route("**/v1/audio/models", direct)
    browser_page.route("**/v1/audio/voices", only_own)
    browser_page.route("**/v1/audio/speech", without_words)
    browser_page.on("request", note)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write("Hello there.")
    speech_page.tab("Voices")
    voices = browser_page.get_by_role("region", name="Voices")
    cards = voices.get_by_role("listitem")
    expect(cards.nth(3)).to_be_visible()
    names = cards.locator("strong").all_inner_texts()
    assert len(names) >= 4
    text = voices.get_by_label("Text to hear")
    expect(text).to_have_value("Hello there.")
    text.fill("")
    speech_page.press("Hear all")
    expect(voices.get_by_role("status")).to_have_text("Write a text to hear first.")
    text.fill("x" * 601)
    long = "The text has 601 characters; at most 600 are heard here. Shorten it."
    expect(voices.get_by_role("status")).to_have_text(long)
    speech_page.press("Hear all")
    expect(text).to_be_focused()
    expect(voices.get_by_role("status")).to_have_text(long)
    text.fill("Yes.")
    expect(voices.get_by_role("status")).to_be_empty()
    voices.get_by_label("Mood").select_option("calm")
    browser_page.evaluate(
        """() => {
          window.spoke = [];
          new MutationObserver(() => {
            const card = document.querySelector(".cards [aria-current] strong");
            if (card && card.textContent !== window.spoke.at(-1)) {
              window.spoke.push(card.textContent);
            }
          }).observe(document.querySelector(".cards"), { attributes: true, subtree: true });
        }"""
    )
    speech_page.press("Hear all")
    browser_page.wait_for_function(
        "names => window.spoke.length === names.length"
        " && document.querySelector('.cards [aria-current]') === null",
        arg=names,
        timeout=SPEECH_DEADLINE_MS,
        polling=POLL_MS,
    )
    assert browser_page.evaluate("window.spoke") == names
    assert {body["input"] for body in asked} == {"Yes."}
    assert len({body["voice"] for body in asked}) == len(names)
    assert all("calmly" in body["instructions"] for body in asked)

    speech_page.press(f"Use {names[2]}")
    chosen = browser_page.locator("#cantata-voice option:checked")
    expect(chosen).to_have_text(names[2])
    speech_page.open_settings()
    words = browser_page.get_by_label("Voice and manner, in words")
    expect(words).to_have_value("Speak calmly and slowly, with a low, even voice.")
