"""The page in Debian's Firefox: the same samples, and the same stop."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import ViewportSize

from timed import timed

from .continuity import first_fault
from .firefox import Firefox, find_firefox, null_sound, running_firefox
from .judges.speech import transcribe
from .server import READY_DEADLINE_S, STOP_DEADLINE_S, Server, wait_until
from .speech_page import PLAYED_AS_BASE64, turn_figures
from .test_page import LONG_TEXT, MAX_SECONDS_TO_SILENCE, SENTENCES
from .test_page_languages import TOO_WIDE
from .test_page_layout import CROWDED_TABS, LAPTOP, PHONE
from .test_page_talk import PLAYED as ANSWER

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SPEECH_DEADLINE_S = 120.0
NOTE_ERRORS = """
(() => {
  window.thrown = [];
  window.addEventListener("error", ({ message }) => window.thrown.push(message));
  window.addEventListener("unhandledrejection", ({ reason }) => window.thrown.push(String(reason)));
})()
"""
SEEK = """
((steps) => {
  const slider = document.querySelector("[data-role=seek]");
  slider.value = String(steps);
  for (const type of ["input", "change"]) slider.dispatchEvent(new Event(type, { bubbles: true }));
})(500)
"""
# A conversation over WebRTC in which nobody but the server speaks aloud.
BEGIN_CALL = """
(() => {
  for (const [id, value] of [["way", "call"], ["turns", "key"]]) {
    const menu = document.querySelector(`#cantata-talk-${id}`);
    menu.value = value;
    menu.dispatchEvent(new Event("change", { bubbles: true }));
  }
  window.states = [];
  const status = document.querySelector("[data-role=talk-status]");
  new MutationObserver(() => window.states.push(status.dataset.state)).observe(status, {
    attributeFilter: ["data-state"],
  });
  document.querySelector("[data-role=talk]").click();
})()
"""
ASK = """
(() => {
  document.querySelector("#cantata-talk-text").value = "What time is it?";
  document.querySelector("[data-role=talk-form]").requestSubmit();
})()
"""
LISTENS = "window.cantata.talk.state === 'listening'"
OFFERED_TABS = "[...document.querySelectorAll('[role=tab]:not([hidden])')].map(({ id }) => id)"
PANEL_IS_THERE = "document.querySelector('[role=tabpanel]:not([hidden]) section') !== null"
IS_READY = "document.querySelector('[data-role=server]')?.dataset.ready === 'true'"


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    command = find_firefox()
    if command is None:
        pytest.skip("no Firefox with PulseAudio: apt-get install firefox-esr pulseaudio")
    with (
        null_sound(tmp_path_factory.mktemp("sound")) as sound,
        running_firefox(command, tmp_path_factory.mktemp("firefox"), sound) as running,
    ):
        yield running


@pytest.fixture
def page(firefox: Firefox, server: Server, kept: Path) -> Iterator[Firefox]:
    """The page, open and ready to speak; its picture and its sound are kept after a failure."""
    firefox.open(server.url)
    wait_until(lambda: bool(firefox.ask(IS_READY)), READY_DEADLINE_S, "the page is ready")
    yield firefox
    firefox.save_screenshot(kept / "page.png")
    soundfile.write(kept / "played.wav", played_by(firefox), 24_000)


def played_by(page: Firefox) -> NDArray[np.int16]:
    return np.frombuffer(base64.b64decode(page.ask(f"({PLAYED_AS_BASE64})()")), dtype="<i2")


def speak(page: Firefox, text: str) -> None:
    page.ask(f"document.querySelector('#cantata-text').value = {text!r}")
    page.click("[data-role=speak]")


def wait_for_state(page: Firefox, wanted: str) -> None:
    def is_reached() -> bool:
        state, error = page.ask("[window.cantata.state, window.cantata.error]")
        assert state != "error", error
        return bool(state == wanted)

    wait_until(is_reached, SPEECH_DEADLINE_S, f"the page is {wanted}")


def test_firefox_plays_exactly_what_the_api_returns(
    page: Firefox, server: Server, figures: Callable[..., None]
) -> None:
    speak(page, SENTENCES[0])
    wait_for_state(page, "done")
    metrics = page.ask("window.cantata.metrics")
    figures(test="one stream", what="in Firefox", **turn_figures(metrics))
    played = played_by(page)
    voice = page.ask("document.querySelector('#cantata-voice').value")
    answer = server.speech(input=SENTENCES[0], response_format="pcm", voice=voice)
    assert first_fault(played, np.frombuffer(answer.content, dtype="<i2")) is None
    assert metrics["playedFrames"] == metrics["server"]["samples"] == len(played)


@pytest.mark.thorough
def test_stop_in_firefox_ends_the_sound_and_the_work(page: Firefox, server: Server) -> None:
    speak(page, LONG_TEXT)
    wait_for_state(page, "playing")
    page.click("[data-role=stop]")
    wait_for_state(page, "stopped")
    metrics = page.ask("window.cantata.metrics")
    assert metrics["silenceSeconds"] > 0
    wait_until(server.is_idle, STOP_DEADLINE_S, "the server gives up the stopped request")


@pytest.mark.thorough
@timed(one_sided=True)
def test_stop_in_firefox_is_silence_at_once(page: Firefox) -> None:
    speak(page, LONG_TEXT)
    wait_for_state(page, "playing")
    page.click("[data-role=stop]")
    wait_for_state(page, "stopped")
    assert page.ask("window.cantata.metrics")["silenceSeconds"] <= MAX_SECONDS_TO_SILENCE


@pytest.mark.thorough
def test_firefox_goes_to_any_place_of_what_was_heard(page: Firefox) -> None:
    speak(page, SENTENCES[0])
    wait_for_state(page, "done")
    whole = played_by(page)
    page.ask(SEEK)
    wait_for_state(page, "done")
    half = played_by(page)
    assert abs(2 * len(half) - len(whole)) <= 2  # to the nearest sample
    np.testing.assert_array_equal(half, whole[-len(half) :])


@pytest.mark.thorough
def test_firefox_converses_over_webrtc(page: Firefox) -> None:
    page.click("#cantata-tab-talk")
    menu = "document.querySelector('#cantata-talk-way') !== null"
    wait_until(lambda: bool(page.ask(menu)), READY_DEADLINE_S, "the tab is there")
    page.ask(BEGIN_CALL)
    wait_until(lambda: bool(page.ask(LISTENS)), READY_DEADLINE_S, "the call is connected")
    page.ask(ASK)
    answered = f"window.states.includes('speaking') && {LISTENS}"
    wait_until(lambda: bool(page.ask(answered)), SPEECH_DEADLINE_S, "the question is answered")
    asked = page.ask("performance.getEntriesByType('resource').map(({ name }) => name)")
    assert any(url.partition("?")[0].endswith("/v1/realtime/calls") for url in asked)
    _, answer = page.ask("window.cantata.talk.turns.map(({ text }) => text)")
    sound = np.frombuffer(base64.b64decode(page.ask(f"({ANSWER})()")), dtype="<i2")
    heard = transcribe(sound.astype(np.float32) / np.float32(32768), 24_000)
    # The time, as clocks write it.
    assert answer.startswith("It is ")
    assert "it is" in heard.lower(), heard
    page.click("[data-role=talk]")


@pytest.mark.parametrize("screen", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_every_tab_opens_in_firefox_and_fits(page: Firefox, screen: ViewportSize) -> None:
    page.resize(screen["width"], screen["height"])
    page.ask(NOTE_ERRORS)
    tabs = page.ask(OFFERED_TABS)
    assert len(tabs) >= 8
    for tab in tabs:
        page.ask(f"document.getElementById({tab!r}).click()")
        wait_until(partial(page.ask, PANEL_IS_THERE), SPEECH_DEADLINE_S, f"{tab} is there")
        assert page.ask(f"({TOO_WIDE})()") == 0, tab
    assert page.ask(f"({CROWDED_TABS})()") == []
    assert page.ask("window.thrown") == []
