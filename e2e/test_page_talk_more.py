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

from .server import Server
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

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
SPEAKER_TURNS = "window.cantata.talk.turns.filter(({ role }) => role === 'assistant').length"


def start(page: Page, server: Server) -> SpeechPage:
    page.add_init_script(WATCH_DEVICES)
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.tab("Talk")
    return speech_page


def wait_for_state(page: Page, state: str) -> None:
    page.wait_for_function(
        "state => window.cantata.talk.state === state", arg=state, timeout=SPEECH_DEADLINE_MS
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


def test_a_microphone_that_vanishes_says_what_to_do(browser_page: Page, server: Server) -> None:
    speech_page = start(browser_page, server)
    speech_page.press("Start talking")
    wait_for_state(browser_page, "listening")
    browser_page.evaluate("window.opened[0].track.dispatchEvent(new Event('ended'))")
    expect(browser_page.locator("[data-role=talk-status]")).to_have_text(
        "The microphone is gone. Connect it again or choose another one, and start again."
    )
    expect(browser_page.get_by_role("button", name="Start talking")).to_be_enabled()


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
    browser_page.get_by_text("Instructions, turns, tools").click()
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
