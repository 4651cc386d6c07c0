"""The page's last takes: kept, played again, saved, compared; and hearing a voice beforehand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, Request, expect

from .server import Server
from .speech_page import SpeechPage
from .test_page import act_as_server

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TEXT = "We walk to the river, and then we go back."
MAX_TAKES = 10
# In the page, so that a busy machine's click does not come after the end.
PRESS_AFTER_A_SECOND = """
(button) => {
  if (window.cantata.heardSeconds <= 1) return false;
  button.click();
  return true;
}
"""


def takes(page: Page) -> Locator:
    return page.get_by_role("list", name="Last takes").get_by_role("listitem")


def say(speech_page: SpeechPage, voice: str) -> NDArray[np.int16]:
    count = speech_page.page.locator(".takes strong").count()
    speech_page.page.get_by_label("Voice", exact=True).select_option(voice)
    speech_page.write(TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    expect(speech_page.page.locator(".takes strong")).to_have_count(count + 1)
    return speech_page.played()


def press_in(take: Locator, name: str) -> None:
    take.get_by_role("button", name=name).click()


def play_to_the_end(speech_page: SpeechPage, take: Locator, name: str) -> None:
    with speech_page.turn():
        press_in(take, name)


def test_takes_are_kept_played_saved_compared_and_cleared(
    browser_page: Page, server: Server, tmp_path: Path
) -> None:
    page = browser_page
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    expect(takes(page)).to_have_text(["None yet. What you have heard appears here."])
    spoken = {voice: say(speech_page, voice) for voice in ("clara", "ben")}
    # Without a choice by hand, the last two are compared.
    expect(page.get_by_role("button", name="Play A, then B")).to_be_enabled()
    pressed = takes(page).locator("[data-compare][aria-pressed=true]")
    expect(pressed).to_have_text(["B", "A"])
    page.reload()
    speech_page.wait_until_ready()
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    expect(takes(page)).to_have_count(2)
    newest, before = takes(page).nth(0), takes(page).nth(1)
    expect(newest).to_contain_text("Ben")
    expect(before).to_contain_text("Clara")
    expect(before).to_contain_text(TEXT)

    play_to_the_end(speech_page, before, "Play Clara")
    np.testing.assert_array_equal(speech_page.played(), spoken["clara"])
    assert len(speech_page.words()) == len(TEXT.split())
    with page.expect_download() as download:
        press_in(before, "Download Clara")
    assert download.value.suggested_filename.startswith("We walk to the river and then")
    download.value.save_as(tmp_path / "take.wav")
    saved, _ = soundfile.read(tmp_path / "take.wav", dtype="int16")
    np.testing.assert_array_equal(saved, spoken["clara"])

    speech_page.write("Something else.")
    press_in(before, "Use again: text and settings of Clara")
    expect(speech_page.text).to_have_value(TEXT)
    assert speech_page.chosen()["voice"] == "clara"

    expect(before.get_by_role("button", name="Compare as A")).to_have_attribute(
        "aria-pressed", "true"
    )
    compare_one_after_the_other(speech_page, spoken)
    compare_by_switching(speech_page, spoken)
    assert sockets == []

    speech_page.press("Clear the takes")
    page.keyboard.press("Escape")
    expect(takes(page)).to_have_count(2)
    speech_page.press("Clear the takes")
    speech_page.press("Clear")
    expect(takes(page)).to_have_text(["None yet. What you have heard appears here."])
    page.reload()
    speech_page.wait_until_ready()
    expect(takes(page)).to_have_text(["None yet. What you have heard appears here."])


def test_what_was_spoken_has_subtitles(speech_page: SpeechPage, tmp_path: Path) -> None:
    say(speech_page, "clara")
    words = speech_page.words()
    speech_page.open_settings()
    for form in ("srt", "vtt"):
        speech_page.page.get_by_label("Download as").select_option(form)
        with speech_page.page.expect_download() as download:
            speech_page.press("Download")
        download.value.save_as(tmp_path / f"said.{form}")
        text = (tmp_path / f"said.{form}").read_text(encoding="utf-8")
        assert text.startswith("1\n" if form == "srt" else "WEBVTT\n")
        assert TEXT in text
        end = f"{words[-1]['end']:06.3f}".replace(".", "," if form == "srt" else ".")
        assert f"--> 00:00:{end}" in text


def compare_one_after_the_other(
    speech_page: SpeechPage, spoken: dict[str, NDArray[np.int16]]
) -> None:
    page = speech_page.page
    speech_page.press("Play A, then B")
    speech_page.wait_for_state("playing")
    switch = page.get_by_role("button", name="Switch to A")
    expect(switch).to_be_visible(timeout=60_000)  # B is playing
    speech_page.wait_for_state("done")
    np.testing.assert_array_equal(speech_page.played(), spoken["ben"])


def compare_by_switching(speech_page: SpeechPage, spoken: dict[str, NDArray[np.int16]]) -> None:
    """B continues at the word that A had reached."""
    page = speech_page.page
    speech_page.press("Play A, to switch")
    switch = page.get_by_role("button", name="Switch to B").element_handle()
    page.wait_for_function(PRESS_AFTER_A_SECOND, arg=switch)
    speech_page.wait_for_state("done")
    rest = speech_page.played()
    assert len(spoken["ben"]) / 3 < len(rest) < len(spoken["ben"]) - 24_000 / 3
    np.testing.assert_array_equal(rest, spoken["ben"][-len(rest) :])
    began = (len(spoken["ben"]) - len(rest)) / 24_000
    assert min(abs(word["start"] - began) for word in speech_page.words()) < 0.001


def test_the_last_ten_are_kept(browser_page: Page, server: Server) -> None:
    act_as_server(browser_page, np.full((4_800, 1), 1_000, dtype=np.int16))
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    for number in range(MAX_TAKES + 2):
        speech_page.write(f"Number {number}.")
        speech_page.press("Speak")
        expect(takes(browser_page).first).to_contain_text(f"Number {number}.")
    expect(takes(browser_page)).to_have_count(MAX_TAKES)
    expect(takes(browser_page).last).to_contain_text("Number 2.")


@pytest.mark.parametrize(
    "missing",
    [
        "Object.defineProperty(window, 'indexedDB', {value: undefined})",
        "indexedDB.open = () => { throw new DOMException('not here', 'SecurityError'); }",
    ],
)
def test_without_indexeddb_takes_last_as_long_as_the_page(
    browser_page: Page, server: Server, missing: str
) -> None:
    page = browser_page
    page.add_init_script(missing)
    act_as_server(page, np.full((4_800, 1), 1_000, dtype=np.int16))
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    expect(page.locator("[data-role=takes-status]")).to_have_text(
        "This browser keeps no takes: they last until you close the page."
    )
    speech_page.press("Speak")
    expect(takes(page)).to_contain_text(["Clara"])
    played = speech_page.played()
    play_to_the_end(speech_page, takes(page).first, "Play Clara")
    np.testing.assert_array_equal(speech_page.played(), played)
    page.reload()
    expect(takes(page)).to_have_text(["None yet. What you have heard appears here."])


@pytest.mark.thorough
def test_a_voice_is_heard_before_it_is_chosen(browser_page: Page, server: Server) -> None:
    page = browser_page
    asked: list[Request] = []
    page.on(
        "request",
        lambda request: asked.append(request) if request.url.endswith("/speech") else None,
    )
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    page.get_by_label("Voice", exact=True).select_option("ruby")
    hear = page.get_by_role("button", name="Hear Ruby")
    for _ in range(2):
        hear.click()
        expect(page.get_by_role("button", name="Stop Ruby")).to_be_visible()
        expect(hear).to_be_visible(timeout=60_000)  # it has played to its end
    (request,) = asked
    body = request.post_data_json
    assert isinstance(body, dict)
    assert body["voice"] == "ruby"
    assert "Ruby" in body["input"]
    hear.click()
    speech_page.press("Speak")
    expect(hear).to_be_visible()
    speech_page.wait_for_state("done")
