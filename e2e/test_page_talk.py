"""The tab "Talk" in a real browser, whose microphone hears the server's own speech."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Playwright, WebSocket, WebSocketRoute, expect

from cantata_bench.asr import word_error_rate
from images_and_videos import image_file, quarters

from .chromium import launch_chromium
from .judges.speech import transcribe
from .server import Server, wait_until
from .speech_page import POLL_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

RATE = 24_000
QUESTION = "The children walk along the river."
LONG = " ".join(
    ["My neighbour bakes bread on Mondays, sells cheese on Tuesdays, and sleeps until noon."] * 3
)
WORST_WER = 0.35
"""Highest word error rate of one short text."""
TURN_DEADLINE_MS = 60_000
FREE_S = 20.0
SILENCE_S = 0.2
"""Seconds of silence before a turn that sounds finished ends; one that does not waits longer."""
CLOCK_S = 0.05
"""Most seconds by which the page's clock and the sound's may differ."""

# Also what stands there for a moment only, which a busy machine's look may miss.
NOTE_STATES = """
() => {
  window.states = [];
  window.told = [];
  const status = document.querySelector("[data-role=talk-status]");
  const note = () => {
    if (window.states.at(-1) !== status.dataset.state) window.states.push(status.dataset.state);
    window.told.push(status.textContent);
  };
  new MutationObserver(note).observe(status, { attributeFilter: ["data-state"] });
}
"""
# A microphone that hears the sound when `say` is called.
ORDERED_MICROPHONE = """
(base64) => {
  const context = new AudioContext();
  const microphone = context.createMediaStreamDestination();
  navigator.mediaDevices.getUserMedia = async () => microphone.stream.clone();
  window.say = async () => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const source = context.createBufferSource();
    source.buffer = await context.decodeAudioData(bytes.buffer);
    source.connect(microphone);
    await context.resume();
    source.start();
  };
}
"""
NO_MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => {
  throw new DOMException("no", "NotAllowedError");
};
"""
NOTE_DRAGS = """
() => {
  window.dragged = [];
  for (const kind of ["dragover", "drop"]) {
    window.addEventListener(kind, (event) => {
      window.dragged.push([kind, event.defaultPrevented, event.dataTransfer.dropEffect]);
    });
  }
}
"""
SPEAKS = """
() => window.cantata.talk.state === "speaking" && window.cantata.talk.capturedPcm().length > 6000
"""
LISTENS = "() => window.cantata.talk.state === 'listening'"
ANSWERED = """
() => window.states.includes("speaking") && window.cantata.talk.state === "listening"
"""
PLAYED = """
() => {
  let text = "";
  for (const byte of new Uint8Array(window.cantata.talk.capturedPcm().buffer)) {
    text += String.fromCharCode(byte);
  }
  return btoa(text);
}
"""


@pytest.fixture(scope="module")
def question(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question in another voice than the answer's, with silence around it."""
    answer = server.speech(input=QUESTION, voice="ben", response_format="pcm", sample_rate=RATE)
    pause = np.zeros(RATE // 2, np.int16)
    file = tmp_path_factory.mktemp("microphone") / "question.wav"
    spoken = np.frombuffer(answer.content, "<i2")
    soundfile.write(file, np.concatenate([pause, spoken, pause]), RATE)
    return file


@pytest.fixture(scope="module")
def browser(playwright: Playwright, question: Path) -> Iterator[Browser]:
    """A browser whose microphone hears the question once, whenever it is opened."""
    browser = launch_chromium(playwright, question, once=True)
    yield browser
    browser.close()


def open_tab(page: Page, server: Server) -> SpeechPage:
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.tab("Talk")
    page.evaluate(NOTE_STATES)
    return speech_page


def wait_for(page: Page, condition: str) -> None:
    page.wait_for_function(condition, timeout=TURN_DEADLINE_MS, polling=POLL_MS)


def turns(page: Page) -> list[dict[str, Any]]:
    return list(page.evaluate("window.cantata.talk.turns"))


def states(page: Page) -> list[str]:
    return list(page.evaluate("window.states"))


def played(page: Page) -> NDArray[np.int16]:
    return np.frombuffer(base64.b64decode(page.evaluate(PLAYED)), "<i2")


def test_a_spoken_question_is_answered_aloud(
    browser_page: Page, server: Server, figures: Callable[..., None]
) -> None:
    page = browser_page
    speech_page = open_tab(page, server)
    expect(speech_page.status("The answer")).to_have_text("Not connected.")
    speech_page.press("Start talking")
    wait_for(page, ANSWERED)
    followed = ["connecting", "listening", "hearing", "thinking", "speaking", "listening"]
    assert states(page) == followed
    user, answer = turns(page)
    log = page.get_by_role("log", name="Conversation")
    expect(log.get_by_role("listitem").nth(0)).to_contain_text(f"You{user['text']}")
    expect(log.get_by_role("listitem").nth(1)).to_contain_text(f"Server{answer['text']}")
    heard_wer = word_error_rate([QUESTION], [user["text"]])
    sound = played(page).astype(np.float32) / np.float32(32768)
    answer_wer = word_error_rate([answer["text"]], [transcribe(sound, RATE)])
    latencies = page.evaluate("({...window.cantata.talk.latencies})")
    shown = {name: f"{1000 * seconds:.0f} ms" for name, seconds in latencies.items()}
    figures(test="talk", what=str(shown), heard=f"{heard_wer:.2f}", answer=f"{answer_wer:.2f}")
    assert heard_wer <= WORST_WER, user["text"]
    assert answer["text"].startswith("You said: ")
    assert answer_wer <= WORST_WER, answer["text"]
    assert SILENCE_S - CLOCK_S <= latencies["noticed"] <= latencies["text"] <= latencies["sound"]
    for name, text in shown.items():
        expect(page.locator(f"[data-latency={name}]")).to_have_text(text)

    speech_page.press("Stop talking")
    expect(speech_page.status("The answer")).to_have_text("Not connected.")


def open_with_ordered_microphone(page: Page, server: Server, question: Path) -> SpeechPage:
    speech_page = open_tab(page, server)
    page.evaluate(ORDERED_MICROPHONE, base64.b64encode(question.read_bytes()).decode())
    speech_page.press("Start talking")
    wait_for(page, LISTENS)
    return speech_page


def make_frames(
    page: Page, direction: Literal["framesent", "framereceived"], kind: str
) -> list[dict[str, Any]]:
    """The events of one type that go over the page's WebSockets from now on; it grows."""
    events: list[dict[str, Any]] = []

    def note(frame: str | bytes) -> None:
        event = json.loads(frame)
        if event["type"] == kind:
            events.append(event)

    def watch(socket: WebSocket) -> None:
        if direction == "framesent":
            socket.on("framesent", note)
        else:
            socket.on("framereceived", note)

    page.on("websocket", watch)
    return events


def test_who_speaks_or_presses_the_button_interrupts_the_answer(
    browser_page: Page, server: Server, question: Path
) -> None:
    page = browser_page
    truncated = make_frames(page, "framesent", "conversation.item.truncate")
    kept = make_frames(page, "framereceived", "conversation.item.retrieved")
    speech_page = open_with_ordered_microphone(page, server, question)
    # A long answer: a busy machine takes seconds to find out that somebody speaks words.
    page.get_by_label("Or type what you would say").fill(LONG)
    page.keyboard.press("Enter")
    wait_for(page, SPEAKS)
    page.evaluate("window.say()")
    wait_for(page, "window.states.includes('hearing')")
    by_voice = len(played(page))
    wait_for(page, SPEAKS)
    speech_page.press("Interrupt")
    expect(speech_page.status("The answer")).to_have_text("Listening.")
    expect(page.get_by_role("button", name="Interrupt")).to_be_disabled()
    items = page.get_by_role("log").get_by_role("listitem")

    def are_shortened() -> bool:
        page.evaluate("null")  # lets Playwright hand over what has come
        return len(kept) == 2

    wait_until(are_shortened, FREE_S, "the server has told what it keeps of both answers")

    answers = [turn for turn in turns(page) if turn["role"] == "assistant"]
    assert [event["item_id"] for event in truncated] == [turn["id"] for turn in answers]
    for event, frames in zip(truncated, (by_voice, len(played(page))), strict=True):
        assert 0 < event["audio_end_ms"] <= 1000 * frames / RATE + 200
    for place, event in zip((1, 3), kept, strict=True):
        words = event["item"]["content"][0]["transcript"]
        assert len(words) < len("You said: ") + len(turns(page)[place - 1]["text"])
        # Who interrupts before the first word has heard nothing: such an answer is not shown.
        shown = items.filter(has_text=f"Server{words.rstrip()} … (interrupted)")
        expect(shown).to_have_count(1 if words.strip() else 0)
    wait_until(server.is_idle, FREE_S, "everything free again")


def drop(page: Page, files: list[Path], selector: str) -> None:
    """Drop files from the desktop: not a script's event, so the browser does with them what it
    does for a user."""
    box = page.locator(selector).bounding_box()
    assert box is not None
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    session = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
    session.detach()


def test_files_that_are_dropped_do_not_end_the_talk(
    browser_page: Page, server: Server, question: Path, tmp_path: Path
) -> None:
    """A browser may open a dropped file in the place of a page that does nothing about it."""
    page = browser_page
    speech_page = open_with_ordered_microphone(page, server, question)
    picture = tmp_path / "picture.png"
    picture.write_bytes(image_file(quarters()))
    address = page.url
    page.evaluate(NOTE_DRAGS)
    for files in ([picture], [question], [picture, question]):
        drop(page, files, "#cantata-talk")
    # Refused while they are over the page, so nothing is dropped.
    dragged = {tuple(one) for one in page.evaluate("window.dragged")}
    assert dragged == {("dragover", True, "none")}
    page.evaluate("window.say()")
    wait_for(page, ANSWERED)
    assert page.url == address
    assert [turn["role"] for turn in turns(page)] == ["user", "assistant"]
    speech_page.press("Stop talking")


def test_a_broken_connection_comes_back_and_the_conversation_is_known_to_it(
    browser_page: Page, server: Server, question: Path
) -> None:
    page = browser_page
    sent: list[list[dict[str, Any]]] = []
    sockets: list[WebSocketRoute] = []

    def pass_on(socket: WebSocketRoute) -> None:
        far = socket.connect_to_server()
        events: list[dict[str, Any]] = []
        sent.append(events)
        sockets.append(socket)

        def send(frame: str | bytes) -> None:
            events.append(json.loads(frame))
            far.send(frame)

        socket.on_message(send)

    page.route_web_socket("**/v1/realtime*", pass_on)
    speech_page = open_with_ordered_microphone(page, server, question)
    page.evaluate("window.say()")
    wait_for(page, SPEAKS)
    user = turns(page)[0]["text"]
    sockets[0].close(code=1012, reason="away")
    status = speech_page.status("The answer")
    wait_for(page, "window.told.includes('The connection broke. Trying again…')")
    expect(status).to_have_text("Listening.")
    assert sent[1][1]["type"] == "conversation.item.create"
    assert sent[1][1]["item"]["content"] == [{"type": "input_text", "text": user}]
    assert turns(page)[1]["cut"]

    page.get_by_label("Voice that answers").select_option("ben")
    wait_for(page, LISTENS)
    assert sent[2][0]["session"]["audio"]["output"]["voice"] == "ben"
    expect(page.locator("#cantata-voice")).to_have_value("ben")
    speech_page.press("Stop talking")
    expect(status).to_have_text("Not connected.")


def test_a_refused_microphone_is_told(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(NO_MICROPHONE)
    speech_page = open_tab(browser_page, server)
    speech_page.press("Start talking")
    expect(speech_page.status("The answer")).to_have_text(
        "The browser was not allowed to use the microphone. Allow it and try again."
    )
    expect(browser_page.get_by_role("button", name="Start talking")).to_be_enabled()
