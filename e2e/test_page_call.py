"""The tab "Talk" over WebRTC in a real browser, whose microphone hears the server's own speech."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, Route, expect

from cantata_bench.asr import word_error_rate

from .judges.speech import transcribe
from .server import Server, wait_until
from .speech_page import SpeechPage
from .test_page_talk import (
    ANSWERED,
    FREE_S,
    LISTENS,
    LONG,
    NOTE_STATES,
    ORDERED_MICROPHONE,
    QUESTION,
    RATE,
    SPEAKS,
    WORST_WER,
    played,
    question,  # noqa: F401 - a fixture
    turns,
    wait_for,
)

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

MORE, WAY = "Instructions, turns, tools, connection", "The sound goes over"
# Of the offer: the server finds no way to the page either.
DROP_CANDIDATES = """
const described = RTCPeerConnection.prototype.setLocalDescription;
RTCPeerConnection.prototype.setLocalDescription = async function () {
  const { type, sdp } = await this.createOffer();
  const nowhere = sdp.replace(/a=ice-pwd:.*/g, `a=ice-pwd:${"x".repeat(24)}`);
  await described.call(this, { type, sdp });
  Object.defineProperty(this, "localDescription", { value: { type, sdp: nowhere } });
};
"""
NO_CALLS = {"error": {"message": "Calls need the extra 'webrtc'.", "code": "not_installed"}}

Begin = Callable[[], tuple[SpeechPage, list[str]]]


@pytest.fixture
def begin(
    browser_page: Page,
    server: Server,
    question: Path,  # noqa: F811
) -> Begin:
    """Begins a conversation over WebRTC; returns the page, and a list that grows by the addresses
    that it asks for."""

    def begun() -> tuple[SpeechPage, list[str]]:
        page = browser_page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("websocket", lambda socket: asked.append(socket.url))
        speech_page = SpeechPage(page)
        speech_page.open(server.url)
        speech_page.tab("Talk")
        page.evaluate(NOTE_STATES)
        page.get_by_text(MORE).click()
        page.get_by_label(WAY).select_option("call")
        page.evaluate(ORDERED_MICROPHONE, base64.b64encode(question.read_bytes()).decode())
        speech_page.press("Start talking")
        wait_for(page, LISTENS)
        return speech_page, asked

    return begun


def talks(asked: list[str]) -> list[str]:
    return [url for url in asked if "/v1/realtime" in url]


def test_a_call_is_a_conversation(begin: Begin, browser_page: Page, server: Server) -> None:
    speech_page, asked = begin()
    page = browser_page
    page.evaluate("window.say()")
    wait_for(page, ANSWERED)
    user, answer = turns(page)
    assert word_error_rate([QUESTION], [user["text"]]) <= WORST_WER
    heard = transcribe(played(page).astype(np.float32) / np.float32(32768), RATE)
    assert word_error_rate([answer["text"]], [heard]) <= WORST_WER, (answer["text"], heard)
    latencies: dict[str, float] = page.evaluate("({...window.cantata.talk.latencies})")
    assert 0 < latencies["noticed"] <= latencies["text"] <= latencies["sound"]
    assert [url.partition("?")[0] for url in talks(asked)] == [f"{server.url}/v1/realtime/calls"]

    # By hand, and with the microphone shut.
    speech_page.press("Mute")
    page.evaluate("window.states = []")
    page.get_by_label("Or type what you would say").fill(LONG)
    page.keyboard.press("Enter")
    wait_for(page, SPEAKS)
    speech_page.press("Interrupt")
    expect(speech_page.status("The answer")).to_have_text("Listening.")
    wait_for(page, "window.cantata.talk.turns.at(-1).cut")
    silenced = len(played(page))
    page.evaluate("window.say()")
    page.wait_for_timeout(1_000)  # nothing may be heard, on either side
    assert len(turns(page)) == 4
    assert len(played(page)) == silenced
    shortened = turns(page)[-1]["text"]
    assert len(shortened) < len(f"You said: {LONG}")

    with page.expect_download() as sound:
        speech_page.press("Save the sound")
    samples, rate = soundfile.read(io.BytesIO(Path(sound.value.path()).read_bytes()))
    assert rate == RATE
    assert (np.abs(samples).max(axis=0) > 0.05).all(), "both sides"
    speech_page.press("Stop talking")
    wait_until(server.is_idle, FREE_S, "everything free again")


@pytest.mark.thorough
def test_a_voice_interrupts_a_call(begin: Begin, browser_page: Page) -> None:
    speech_page, _ = begin()
    page = browser_page
    page.get_by_label("Or type what you would say").fill(LONG)
    page.keyboard.press("Enter")
    wait_for(page, SPEAKS)
    page.evaluate("window.say()")
    wait_for(page, "window.states.includes('hearing')")
    wait_for(page, "window.cantata.talk.turns.length === 4")
    wait_for(page, LISTENS)
    _, first, user, second = turns(page)
    assert first["cut"]
    assert 0 < len(first["text"]) < len(LONG), "what was heard of it"
    assert (user["role"], second["role"]) == ("user", "assistant")
    assert word_error_rate([QUESTION], [user["text"]]) <= WORST_WER
    assert not second["cut"]
    speech_page.press("Stop talking")


@pytest.mark.thorough
def test_a_held_button_is_a_turn_of_a_call(begin: Begin, browser_page: Page) -> None:
    speech_page, _ = begin()
    page = browser_page
    page.get_by_label("A turn ends").select_option("key")
    page.evaluate("window.say()")
    page.wait_for_timeout(500)  # nobody may hear it
    assert turns(page) == []
    page.wait_for_timeout(2_500)
    hold = page.get_by_role("button", name="Hold to talk")
    hold.focus()
    page.keyboard.down("Space")
    page.evaluate("window.say()")
    page.wait_for_timeout(3_000)  # the length of the question
    page.keyboard.up("Space")
    wait_for(page, ANSWERED)
    user, answer = turns(page)
    assert word_error_rate([QUESTION], [user["text"]]) <= WORST_WER, user["text"]
    assert answer["text"]
    speech_page.press("Stop talking")


@pytest.mark.thorough
def test_without_calls_the_sound_goes_over_a_socket(begin: Begin, browser_page: Page) -> None:
    page = browser_page

    def refuse(route: Route) -> None:
        route.fulfill(status=501, json=NO_CALLS)

    page.route("**/v1/realtime/calls*", refuse)
    speech_page, asked = begin()
    told = page.get_by_text("No call over WebRTC could be made")
    expect(told).to_be_visible()
    page.evaluate("window.say()")
    wait_for(page, ANSWERED)
    assert [url.partition(":")[0] for url in talks(asked)] == ["http", "ws"]
    assert np.abs(played(page)).max() > 1_000
    speech_page.press("Stop talking")


@pytest.mark.thorough
def test_a_call_that_does_not_come_about_is_a_socket(begin: Begin, browser_page: Page) -> None:
    """As behind a firewall that lets no UDP through: the server's answer names dead ends."""
    page = browser_page

    def misdirect(route: Route) -> None:
        answer = route.fetch()
        lines = [one for one in answer.text().splitlines() if not one.startswith("a=candidate")]
        route.fulfill(response=answer, body="\r\n".join([*lines, ""]))

    page.route("**/v1/realtime/calls*", misdirect)
    page.add_init_script(DROP_CANDIDATES)
    speech_page, asked = begin()
    expect(page.get_by_text("No call over WebRTC could be made")).to_be_visible()
    assert [url.partition(":")[0] for url in talks(asked)] == ["http", "ws"]
    speech_page.press("Stop talking")


def test_phones_call(browser_page: Page, server: Server) -> None:
    browser = browser_page.context.browser
    assert browser is not None
    with browser.new_context(has_touch=True, is_mobile=True) as context:
        page = context.new_page()
        speech_page = SpeechPage(page)
        speech_page.open(server.url)
        speech_page.tab("Talk")
        page.get_by_text(MORE).click()
        expect(page.get_by_label(WAY)).to_have_value("call")
