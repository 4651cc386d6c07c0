"""A talk's devices, typed turns, push to talk, and files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, WebSocketRoute, expect

from .cuttable_line import cuttable_line
from .server import Server
from .speech_page import POLL_MS, SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

WATCH_DEVICES = """
window.opened = [];
window.locks = 0;
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (asked) => {
  const stream = await open(asked);
  window.opened.push({ asked, track: stream.getTracks()[0] });
  return stream;
};
navigator.wakeLock.request = async () => {
  window.locks += 1;
  return { release: async () => (window.locks -= 1) };
};
"""
NOTE_STATES = """
() => {
  window.states = [];
  const status = document.querySelector("[data-role=talk-status]");
  new MutationObserver(() => window.states.push(status.dataset.state)).observe(status, {
    attributeFilter: ["data-state"],
  });
}
"""
LONG = "She went to the market to buy some bread and milk, and then she walked along the river."
SPEAKS = """
() => window.cantata.talk.state === "speaking" && window.cantata.talk.capturedPcm().length > 6000
"""
SPOKEN = "() => window.states.includes('speaking') && window.cantata.talk.state === 'listening'"
PLAYED = "Array.from(window.cantata.talk.capturedPcm())"
SPEAKER_TURNS = "window.cantata.talk.turns.filter(({ role }) => role === 'assistant').length"


def start(page: Page, server: Server, url: str | None = None) -> SpeechPage:
    page.add_init_script(WATCH_DEVICES)
    speech_page = SpeechPage(page)
    speech_page.open(url or server.url)
    speech_page.tab("Talk")
    return speech_page


def wait_for_state(page: Page, state: str) -> None:
    page.wait_for_function(
        "state => window.cantata.talk.state === state",
        arg=state,
        timeout=SPEECH_DEADLINE_MS,
        polling=POLL_MS,
    )


def test_a_typed_question_is_answered_aloud_and_saved_with_its_sound(
    browser_page: Page, server: Server
) -> None:
    speech_page = start(browser_page, server)
    speech_page.press("Mute")
    speech_page.press("Start talking")
    wait_for_state(browser_page, "listening")
    assert browser_page.evaluate("window.locks") == 1, "the screen stays on"
    browser_page.get_by_label("Or type what you would say").fill("What time is it?")
    browser_page.keyboard.press("Enter")
    browser_page.wait_for_function(f"{SPEAKER_TURNS} === 1", timeout=SPEECH_DEADLINE_MS)
    wait_for_state(browser_page, "listening")
    said = browser_page.get_by_role("log").get_by_role("listitem").first.locator("[dir=auto]")
    expect(said).to_have_text("What time is it?")

    microphones = browser_page.get_by_label("Microphone", exact=True)
    microphones.select_option(index=2)
    browser_page.wait_for_function("window.opened.length === 2")
    chosen = browser_page.evaluate("window.opened[1].asked.audio.deviceId.exact")
    assert chosen == microphones.input_value()
    wait_for_state(browser_page, "listening")

    with browser_page.expect_download() as words:
        speech_page.press("Save the words")
    assert words.value.suggested_filename == "What time is it.md"
    text = Path(words.value.path()).read_text(encoding="utf-8")
    assert text.startswith("**You:** What time is it?\n\n**Server:** ")
    with browser_page.expect_download() as sound:
        speech_page.press("Save the sound")
    samples, rate = soundfile.read(io.BytesIO(Path(sound.value.path()).read_bytes()))
    assert rate == 24_000
    assert np.abs(samples[:, 0]).max() == 0, "the microphone was mute"
    assert np.abs(samples[:, 1]).max() > 0.05

    speech_page.press("Stop talking")
    browser_page.wait_for_function("window.locks === 0")


def test_a_lost_network_costs_no_sample_of_an_answer(browser_page: Page, server: Server) -> None:
    """The same question twice; the second answer loses its connection when it has begun."""
    page = browser_page
    with cuttable_line(server.url) as line:
        speech_page = start(page, server, line.url)
        page.evaluate(NOTE_STATES)
        speech_page.press("Mute")
        speech_page.press("Start talking")
        wait_for_state(page, "listening")

        def ask() -> None:
            page.evaluate("window.states = []")
            page.get_by_label("Or type what you would say").fill(LONG)
            page.keyboard.press("Enter")
            page.wait_for_function(SPEAKS, timeout=SPEECH_DEADLINE_MS, polling=POLL_MS)

        ask()
        page.wait_for_function(SPOKEN, timeout=SPEECH_DEADLINE_MS, polling=POLL_MS)
        whole = page.evaluate(PLAYED)
        ask()
        assert line.cut() == 1
        page.wait_for_function("window.states.includes('lost')", timeout=SPEECH_DEADLINE_MS)
        page.wait_for_function(SPOKEN, timeout=SPEECH_DEADLINE_MS, polling=POLL_MS)
        assert page.evaluate(PLAYED) == whole
        turns = page.evaluate("window.cantata.talk.turns")
        assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
        assert not any(turn["cut"] for turn in turns)
        assert turns[1]["text"] == turns[3]["text"]
        expect(speech_page.status("The answer")).to_have_text("Listening.")
        speech_page.press("Stop talking")


def test_a_microphone_that_vanishes_says_what_to_do(browser_page: Page, server: Server) -> None:
    speech_page = start(browser_page, server)
    speech_page.press("Start talking")
    wait_for_state(browser_page, "listening")
    browser_page.evaluate("window.opened[0].track.dispatchEvent(new Event('ended'))")
    expect(browser_page.locator("[data-role=talk-status]")).to_have_text(
        "The microphone is gone. Connect it again or choose another one, and start again."
    )
    expect(browser_page.get_by_role("button", name="Start talking")).to_be_enabled()


def test_a_typed_turn_that_is_too_long_was_not_said(browser_page: Page, server: Server) -> None:
    speech_page = start(browser_page, server)
    speech_page.press("Mute")
    speech_page.press("Start talking")
    wait_for_state(browser_page, "listening")
    field = browser_page.get_by_label("Or type what you would say")
    field.fill("x" * 19_999)
    browser_page.keyboard.press("Enter")
    expect(browser_page.locator("[data-role=talk-status]")).to_have_text(
        "This was not sent: Item.content has 19999 characters; at most 16384 are accepted."
    )
    expect(browser_page.get_by_role("log").get_by_role("listitem")).to_have_count(0)
    expect(field).to_have_value("x" * 19_999)
    wait_for_state(browser_page, "listening")
    field.fill("What time is it?")
    browser_page.keyboard.press("Enter")
    browser_page.wait_for_function(f"{SPEAKER_TURNS} === 1", timeout=SPEECH_DEADLINE_MS)


def test_a_microphone_that_cannot_be_opened_says_what_to_do(
    browser_page: Page, server: Server
) -> None:
    browser_page.add_init_script(BROKEN_MICROPHONE)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.tab("Talk")
    speech_page.press("Start talking")
    expect(browser_page.locator("[data-role=talk-status]")).to_have_text(
        "The microphone cannot be used: AbortError. Connect it again or choose another one, and "
        "try again."
    )


def test_instructions_tools_and_push_to_talk_reach_the_server(
    browser_page: Page, server: Server
) -> None:
    sent: list[dict[str, Any]] = []

    def answer(route: WebSocketRoute) -> None:
        def take(text: str | bytes) -> None:
            event = json.loads(text)
            sent.append(event)
            if event["type"] == "session.update":
                route.send(json.dumps({"type": "session.updated"}))

        route.on_message(take)

    browser_page.route_web_socket("**/v1/realtime*", answer)
    speech_page = start(browser_page, server)
    browser_page.get_by_text("Instructions, turns, tools, connection").click()
    browser_page.get_by_label("A turn ends").select_option("key")
    tools = browser_page.get_by_label("Tools, a JSON list; you type")
    tools.fill("nonsense")
    tools.blur()
    expect(browser_page.locator("[data-role=talk-told]")).to_contain_text("not a JSON list")
    tools.fill('[{"type": "function", "name": "clock"}]')
    browser_page.locator("#cantata-talk-instructions").fill("Be brief.")
    speech_page.press("Start talking")
    wait_for_state(browser_page, "listening")
    session = sent[0]["session"]
    assert session["instructions"] == "Be brief."
    assert session["tools"] == [{"type": "function", "name": "clock"}]
    assert session["audio"]["input"]["turn_detection"] is None

    browser_page.get_by_role("button", name="Hold to talk").focus()
    browser_page.keyboard.down("Space")
    wait_for_state(browser_page, "hearing")
    browser_page.wait_for_timeout(400)
    browser_page.keyboard.up("Space")
    wait_for_state(browser_page, "thinking")
    types = [event["type"] for event in sent[1:]]
    assert types[0] == "input_audio_buffer.clear"
    assert set(types[1:-2]) == {"input_audio_buffer.append"}
    assert types[-2:] == ["input_audio_buffer.commit", "response.create"]


# As where its driver has failed.
BROKEN_MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => {
  throw new DOMException("no", "AbortError");
};
"""
# A microphone that hears nothing at all.
SILENT_MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext();
  const silence = context.createGain();
  silence.gain.value = 0;
  const source = context.createOscillator();
  const target = context.createMediaStreamDestination();
  source.connect(silence).connect(target);
  source.start();
  return target.stream;
};
"""
ALL_GIVEN_BACK = "window.opened.every(({ track }) => track.readyState === 'ended')"
INK_ON_THE_LINE = """
(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let ink = 0;
  for (let i = 3; i < data.length; i += 4) ink += data[i] > 0;
  return ink;
}
"""


@pytest.mark.thorough
def test_the_microphone_is_heard_and_played_before_a_talk(
    browser_page: Page, server: Server
) -> None:
    speech_page = start(browser_page, server)
    told = browser_page.locator("[data-role=talk-told]")
    speech_page.press("Test both")
    expect(told).to_have_text("Say something…")
    expect(told).to_have_text("This is what it heard.")  # Chromium's pretended one beeps
    assert browser_page.evaluate("window.opened[0].track.readyState") == "ended", "it is given back"
    line = browser_page.locator("[data-role=talk-level]")
    assert line.evaluate(INK_ON_THE_LINE) > 100
    expect(browser_page.get_by_role("button", name="Test both")).to_be_visible()  # it was played

    speech_page.press("Test both")
    speech_page.press("End the test")
    expect(browser_page.get_by_role("button", name="Test both")).to_be_visible()
    browser_page.wait_for_function(ALL_GIVEN_BACK)

    speech_page.press("Test both")
    speech_page.press("Start talking")  # which needs the microphone
    wait_for_state(browser_page, "listening")
    expect(browser_page.get_by_role("button", name="Test both")).to_be_disabled()


@pytest.mark.thorough
def test_a_silent_microphone_is_found_out(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(SILENT_MICROPHONE)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.tab("Talk")
    speech_page.press("Test both")
    expect(browser_page.locator("[data-role=talk-told]")).to_have_text(
        "Nothing was heard. Choose another microphone, or see whether the system has muted it."
    )
    expect(browser_page.get_by_role("button", name="Test both")).to_be_visible()
