"""The player bar of *Speak*: time, place, speed and volume of what is spoken, while it comes and
afterwards. What is heard stays what the server made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Locator, Page, expect

from .server import Server
from .speech_page import PRESS_ONCE_PLAYING, SpeechPage
from .test_page import LONG_TEXT, SENTENCES, act_as_server

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TEXT = " ".join(SENTENCES)
RATE = 24_000
# In the page, so that a busy machine's click does not come after the end.
SEEK_AFTER_A_SECOND = """
(steps) => {
  if (window.cantata.state !== "playing" || window.cantata.heardSeconds <= 1) return false;
  const slider = document.querySelector("[data-role=seek]");
  slider.value = String(steps);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  slider.dispatchEvent(new Event("change", { bubbles: true }));
  return true;
}
"""
TIMED_REPLAY = """
() => new Promise((resolve) => {
  const button = document.querySelector("[data-role=play]");
  const from = performance.now();
  const look = () => {
    if (window.cantata.state === "done") resolve(performance.now() - from);
    else setTimeout(look, 10);
  };
  button.click();
  setTimeout(look, 100);
})
"""
# Of a browser's control: what the system's buttons would call.
NOTE_HANDLERS = """
const handlers = {};
window.press = (action, details = {}) => handlers[action]({ action, ...details });
MediaSession.prototype.setActionHandler = (action, handler) => { handlers[action] = handler; };
"""


def seek(page: Page, share: float) -> None:
    page.get_by_label("Place in the sound").fill(str(round(1000 * share)))


def said(server: Server, speech_page: SpeechPage, text: str) -> NDArray[np.int16]:
    answer = server.speech(input=text, response_format="pcm", **speech_page.chosen())
    return np.frombuffer(answer.content, dtype="<i2")


def speak(speech_page: SpeechPage, text: str = TEXT) -> NDArray[np.int16]:
    speech_page.write(text)
    with speech_page.turn():
        speech_page.press("Speak")
    return speech_page.played()


def speak_without_gap(speech_page: SpeechPage, text: str = TEXT) -> NDArray[np.int16]:
    """A gap of a busy machine is drawn, too, and moves what comes after it."""
    for _ in range(5):
        played = speak(speech_page, text)
        if not speech_page.metrics()["gaps"]:
            return played
    pytest.fail("it stuttered five times")


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def test_what_was_heard_is_played_again_from_any_place(speech_page: SpeechPage) -> None:
    page = speech_page.page
    expect(page.get_by_label("Place in the sound")).to_be_disabled()
    whole = speak(speech_page)
    total = page.locator("[data-role=total]")
    expect(total).to_have_text(clock(len(whole) / RATE))
    expect(page.locator("[data-role=time]")).to_have_text(clock(len(whole) / RATE))
    words = speech_page.words()
    with speech_page.turn():
        seek(page, 0.5)
    half = speech_page.played()
    assert abs(2 * len(half) - len(whole)) <= 2  # to the nearest sample
    np.testing.assert_array_equal(half, whole[-len(half) :])
    assert speech_page.words() == words, "they stand where they stood"
    with speech_page.turn():  # from the beginning
        speech_page.press("Replay")
    np.testing.assert_array_equal(speech_page.played(), whole)


def click_at(thing: Locator, share: float) -> None:
    """With the mouse, at this share of its width."""
    box = thing.bounding_box()
    assert box is not None
    thing.click(position={"x": share * box["width"], "y": box["height"] / 2})


def test_a_click_on_the_sound_or_on_the_bar_goes_there(speech_page: SpeechPage) -> None:
    page = speech_page.page
    whole = speak_without_gap(speech_page)
    waveform = page.get_by_role("img", name="Waveform of the speech")
    width = waveform.evaluate("canvas => canvas.clientWidth")
    # A column of 5 pixels is 20 ms, or twice that, and again, until all of them fit.
    cells = len(whole) / RATE / 0.02
    merged = 1
    while cells > merged * (width // 5):
        merged *= 2
    column = int(cells / merged / 2)  # in the middle of what is drawn
    with speech_page.turn():
        click_at(waveform, (5 * column + 2) / width)
    rest = len(whole) - round(RATE * 0.02 * merged * column)
    played = speech_page.played()
    assert abs(len(played) - rest) <= RATE * 0.02 * merged
    np.testing.assert_array_equal(played, whole[-len(played) :])
    with speech_page.turn():
        click_at(page.get_by_label("Place in the sound"), 0.5)
    played = speech_page.played()
    assert len(played) / len(whole) == pytest.approx(0.5, abs=0.03)
    np.testing.assert_array_equal(played, whole[-len(played) :])


@pytest.mark.thorough
def test_going_back_while_it_speaks_loses_nothing(
    speech_page: SpeechPage, server: Server, tmp_path: Path
) -> None:
    page = speech_page.page
    whole = said(server, speech_page, TEXT)
    speech_page.write(TEXT)
    with speech_page.turn():
        speech_page.press("Speak")
        page.wait_for_function(SEEK_AFTER_A_SECOND, arg=0)
    played = speech_page.played()
    before = len(played) - len(whole)
    assert before >= RATE / 2
    np.testing.assert_array_equal(played[before:], whole, "all of it, after going back")
    np.testing.assert_array_equal(played[:before], whole[:before])
    assert speech_page.metrics()["playedFrames"] == len(whole)
    with page.expect_download() as download:  # each sample once
        speech_page.press("Download")
    download.value.save_as(tmp_path / "saved.wav")
    saved, _ = soundfile.read(tmp_path / "saved.wav", dtype="int16")
    np.testing.assert_array_equal(saved, whole)


def test_going_beyond_what_has_come_waits_for_it(speech_page: SpeechPage) -> None:
    page = speech_page.page
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    page.wait_for_function(SEEK_AFTER_A_SECOND, arg=1000)
    # At the end of what had come; it plays on, or the server had been done.
    page.wait_for_function(
        "['playing', 'starved', 'done'].includes(window.cantata.state)"
        " && window.cantata.heardSeconds > 2"
    )
    page.keyboard.press("Escape")
    speech_page.wait_for_state("stopped", "done")


@pytest.mark.thorough
def test_a_pause_lasts_while_the_place_is_changed(speech_page: SpeechPage) -> None:
    page = speech_page.page
    whole = speak(speech_page)
    page.locator("[data-role=play]").evaluate(PRESS_ONCE_PLAYING)
    speech_page.press("Replay")
    speech_page.wait_for_state("paused")
    heard = len(speech_page.played())
    seek(page, 0.5)
    at = page.locator("[data-role=time]")
    expect(at).to_have_text(clock(len(whole) / RATE / 2))
    page.wait_for_timeout(300)  # nothing may play
    assert page.evaluate("window.cantata.state") == "paused"
    assert len(speech_page.played()) - heard < RATE / 5, "but what was on its way"
    speech_page.press("Continue")
    speech_page.wait_for_state("done")
    half = len(whole) // 2 - 1
    np.testing.assert_array_equal(speech_page.played()[-half:], whole[-half:])


@pytest.mark.thorough
def test_speed_and_volume_change_what_is_heard_and_not_what_is_kept(
    speech_page: SpeechPage,
) -> None:
    page = speech_page.page
    whole = speak(speech_page)
    usual = page.evaluate(TIMED_REPLAY)
    page.get_by_label("Play at").select_option("2")
    page.get_by_label("Volume").fill("0.3")
    fast = page.evaluate(TIMED_REPLAY)
    assert fast < 0.85 * usual
    np.testing.assert_array_equal(speech_page.played(), whole)
    page.reload()
    speech_page.wait_until_ready()
    expect(page.get_by_label("Play at")).to_have_value("2")
    expect(page.get_by_label("Volume")).to_have_value("0.3")


@pytest.mark.thorough
def test_the_keyboard_moves_it(speech_page: SpeechPage) -> None:
    page = speech_page.page
    whole = speak(speech_page)
    slider = page.get_by_label("Place in the sound")
    slider.focus()
    with speech_page.turn():
        page.keyboard.press("Home")
    np.testing.assert_array_equal(speech_page.played(), whole)
    told = slider.get_attribute("aria-valuetext")
    assert told == f"{clock(len(whole) / RATE)} of {clock(len(whole) / RATE)}"


@pytest.mark.thorough
def test_a_headsets_buttons_move_it(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(NOTE_HANDLERS)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    whole = speak(speech_page)

    def press(action: str, **details: Any) -> NDArray[np.int16]:
        with speech_page.turn():
            browser_page.evaluate("(called) => window.press(...called)", [action, details])
        return speech_page.played()

    np.testing.assert_array_equal(press("seekbackward"), whole)  # it has less than ten seconds
    np.testing.assert_array_equal(press("seekto", seekTime=1), whole[RATE:])


def test_stereo_is_moved_by_frames(browser_page: Page, server: Server) -> None:
    frames = np.arange(RATE, dtype=np.int16)
    act_as_server(browser_page, np.stack([frames, -frames], axis=1))
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    whole = speak(speech_page, "Left and right.")
    assert len(whole) == 2 * RATE
    with speech_page.turn():
        seek(browser_page, 0.25)
    np.testing.assert_array_equal(speech_page.played(), whole[2 * RATE // 4 :])
