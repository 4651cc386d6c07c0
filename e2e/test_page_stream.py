"""Streams that break, run late or are paused: what is heard, and what the page says meanwhile."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, WebSocketRoute, expect

from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SENTENCE = "Good morning. The train to the coast leaves at half past nine."
SOCKET = "**/v1/audio/speech/stream"
RATE = 24_000
SECOND = 2 * RATE  # bytes
FULL_DEADLINE_S = 60.0
START = {"type": "audio.start", "sample_rate": RATE, "channels": 1}
BROKEN = "The connection closed before the speech was complete."

# The clock by which the page estimates when a frame was rendered, half a second ahead, as with a
# device that takes large blocks.
HURRIED_CLOCK = """
const { get } = Object.getOwnPropertyDescriptor(BaseAudioContext.prototype, "currentTime");
Object.defineProperty(BaseAudioContext.prototype, "currentTime", {
  get() { return get.call(this) + 0.5; },
});
"""
KEEP_MEDIA_ACTIONS = """
window.mediaActions = {};
const set = MediaSession.prototype.setActionHandler;
MediaSession.prototype.setActionHandler = function (action, handler) {
  window.mediaActions[action] = handler;
  set.call(this, action, handler);
};
"""
# Changes of text that a screen reader would announce, with the player's state at that moment.
NOTE_ANNOUNCEMENTS = """
() => {
  window.announced = [];
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const element = target instanceof Element ? target : target.parentElement;
      const line = element?.closest("[role=status], [role=alert], [aria-live]");
      if (line && line.getAttribute("aria-live") !== "off") {
        window.announced.push([window.cantata.state, line.textContent.trim()]);
      }
    }
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}
"""
# Pixels of the waveform in the colour of gaps, and in that of speech, by column.
COLUMNS = """
(canvas) => {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  const style = getComputedStyle(canvas);
  const of = (name) => {
    const parts = style.getPropertyValue(name).match(/[0-9a-f]{2}/gi);
    const [r, g, b] = parts.map((part) => parseInt(part, 16));
    return Array.from({ length: width }, (_, x) => {
      let count = 0;
      for (let y = 0; y < height; y += 1) {
        const i = 4 * (y * width + x);
        if (data[i] === r && data[i + 1] === g && data[i + 2] === b) count += 1;
      }
      return count;
    });
  };
  return { gap: of("--gap"), played: of("--wave-played") };
}
"""

# What the status said, with the player's state at that moment.
NOTE_STATUS = """
() => {
  const line = document.querySelector("[data-role=status]");
  window.said = [];
  const note = () => window.said.push([window.cantata.state, line.textContent]);
  new MutationObserver(note).observe(line, { childList: true });
}
"""


class Gate:
    """A proxy between the page and the server that lets a set number of bytes of sound through."""

    def __init__(self, page: Page, passing: int) -> None:
        self.passing = passing
        self.connections = 0
        self._page = page
        self._cut = 0
        self._held: list[str | bytes] = []
        self._route: WebSocketRoute | None = None
        self._passed = 0
        page.route_web_socket(SOCKET, self._connect)

    def cut_when_full(self) -> None:
        """Ends the latest connection once all that may pass has passed."""
        deadline = time.monotonic() + FULL_DEADLINE_S
        while self.connections == self._cut or not self._held:
            assert time.monotonic() < deadline, "the server sent less than may pass"
            self._page.wait_for_timeout(20)  # the messages pass meanwhile
        assert self._route is not None
        self._route.close(code=1011)
        self._cut = self.connections

    def _connect(self, route: WebSocketRoute) -> None:
        self.connections += 1
        self._route, self._passed, self._held = route, 0, []
        upstream = route.connect_to_server()

        def forward(message: str | bytes) -> None:
            size = len(message) if isinstance(message, bytes) else 0
            if self._held or self._passed + size > self.passing:
                self._held.append(message)
                return
            self._passed += size
            route.send(message)

        upstream.on_message(forward)


def opened(page: Page, server: Server) -> SpeechPage:
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.write(SENTENCE)
    return speech_page


def whole(server: Server, speech_page: SpeechPage, text: str = SENTENCE) -> NDArray[np.int16]:
    answer = server.speech(input=text, response_format="pcm", **speech_page.chosen())
    return np.frombuffer(answer.content, dtype="<i2")


def break_off(page: Page, server: Server) -> tuple[SpeechPage, Gate]:
    """After a second of sound."""
    gate = Gate(page, SECOND)
    speech_page = opened(page, server)
    speech_page.press("Speak")
    gate.cut_when_full()
    return speech_page, gate


def act_as_server(
    page: Page,
    chunks: Iterable[NDArray[np.int16]],
    rtf: float,
    words: Sequence[dict[str, float]] = (),
) -> None:
    """The test answers every text with these, each when the iterator yields it."""

    def answer(route: WebSocketRoute) -> None:
        def reply(message: str | bytes) -> None:
            if json.loads(message)["type"] != "input.done":
                return
            samples = 0
            route.send(json.dumps(START))
            route.send(json.dumps({"type": "audio.timestamps", "words": words}))
            for chunk in chunks:
                route.send(chunk.astype("<i2").tobytes())
                samples += len(chunk)
            route.send(json.dumps({"type": "audio.done", "samples": samples, "rtf": rtf}))
            route.send(json.dumps({"type": "input.spoken"}))

        route.on_message(reply)

    page.route_web_socket(SOCKET, answer)


def noise(seconds: float) -> NDArray[np.int16]:
    rng = np.random.default_rng(7)
    return rng.integers(-9_000, 9_000, round(seconds * RATE), dtype=np.int16)


def said(page: Page) -> list[tuple[str, str]]:
    return [(state, sentence) for state, sentence in page.evaluate("window.said")]


def test_what_came_before_a_break_is_played_with_the_error_beside_it(
    browser_page: Page, server: Server
) -> None:
    sound = noise(2.0)

    def break_off(route: WebSocketRoute) -> None:
        def reply(message: str | bytes) -> None:
            if json.loads(message)["type"] == "input.done":
                route.send(json.dumps(START))
                route.send(sound.astype("<i2").tobytes())
                route.close(code=1011)

        route.on_message(reply)

    browser_page.route_web_socket(SOCKET, break_off)
    speech_page = opened(browser_page, server)
    browser_page.evaluate(NOTE_STATUS)
    speech_page.press("Speak")
    browser_page.wait_for_function("window.cantata.state === 'error'")
    states = [state for state, sentence in said(browser_page) if sentence == BROKEN]
    assert states[0] in ("buffering", "playing")
    expect(speech_page.status()).to_have_text(BROKEN)
    np.testing.assert_array_equal(speech_page.played(), sound)
    assert speech_page.metrics()["gaps"] == []


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("early", [True, False], ids=["while it plays", "when it is silent"])
def test_the_rest_of_a_broken_stream_follows_at_its_sample(
    browser_page: Page, server: Server, early: bool
) -> None:
    speech_page, gate = break_off(browser_page, server)
    expect(speech_page.status()).to_have_text(BROKEN)
    if not early:
        browser_page.wait_for_function("window.cantata.state === 'error'")
    gate.passing = 10**12
    speech_page.press("Speak again from here")
    speech_page.wait_for_state("done")
    expect(browser_page.get_by_role("button", name="Speak again from here")).to_be_hidden()
    np.testing.assert_array_equal(speech_page.played(), whole(server, speech_page))
    words = speech_page.words()
    assert [word["text"] for word in words] == SENTENCE.replace(".", "").split()
    assert words[-1]["end"] * RATE <= len(speech_page.played())


@pytest.mark.thorough
def test_a_rest_that_breaks_too_is_continued_where_it_broke(
    browser_page: Page, server: Server
) -> None:
    speech_page, gate = break_off(browser_page, server)
    browser_page.wait_for_function("window.cantata.state === 'error'")
    for seconds in (0.5, 2.0):  # before anything new, and after more of it
        gate.passing = int(seconds * SECOND)
        speech_page.press("Speak again from here")
        gate.cut_when_full()
        expect(speech_page.status()).to_have_text(BROKEN)
        browser_page.wait_for_function("window.cantata.state === 'error'")
    gate.passing = 10**12
    speech_page.press("Speak again from here")
    speech_page.wait_for_state("done")
    assert gate.connections == 4
    np.testing.assert_array_equal(speech_page.played(), whole(server, speech_page))


def test_the_rest_of_a_broken_stream_follows_though_its_text_was_typed(
    browser_page: Page, server: Server
) -> None:
    clauses = ("When the rain stops,", "we walk down to the harbour,")
    speech_page = opened(browser_page, server)
    sound = [whole(server, speech_page, clause) for clause in clauses]
    gate = Gate(browser_page, sound[0].nbytes + SECOND // 2)
    browser_page.get_by_role("switch", name="Speak while I type").click()
    browser_page.keyboard.type(" ".join(clauses) + " ")
    gate.cut_when_full()
    expect(speech_page.status()).to_have_text(BROKEN)
    gate.passing = 10**12
    speech_page.press("Speak again from here")
    speech_page.wait_for_state("done")
    np.testing.assert_array_equal(speech_page.played(), np.concatenate(sound))
    words = " ".join(clauses).replace(",", "").split()
    assert [word["text"] for word in speech_page.words()] == words


def test_waiting_for_sound_is_said_and_drawn_where_it_was(
    browser_page: Page, server: Server
) -> None:
    sentences: list[str] = []

    def chunks() -> Iterator[NDArray[np.int16]]:
        yield noise(1.0)
        browser_page.wait_for_function("window.cantata.state === 'starved'")
        sentences.append(speech_page.status().inner_text())
        browser_page.wait_for_timeout(600)  # of silence
        yield noise(1.5)

    act_as_server(browser_page, chunks(), rtf=0.2)
    speech_page = opened(browser_page, server)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    assert sentences[0].startswith("Waiting for sound")
    metrics = speech_page.metrics()
    (gap,) = metrics["gaps"]
    assert gap["atFrame"] == RATE
    assert gap["frames"] == metrics["starvedFrames"] >= 0.6 * RATE
    waited = f"{gap['frames'] / RATE:.2f} s"
    expect(speech_page.status()).to_have_text(
        f"Done. You waited for sound 1 time, {waited} in all."
    )

    columns = browser_page.get_by_role("img", name="Waveform").evaluate(COLUMNS)
    gaps, played = (np.flatnonzero(columns[name]) for name in ("gap", "played"))
    total = metrics["playedFrames"] + gap["frames"]
    end = played[-1]
    assert gaps[0] / end == pytest.approx(gap["atFrame"] / total, abs=0.03)
    assert (gaps[-1] - gaps[0]) / end == pytest.approx(gap["frames"] / total, abs=0.03)
    assert set(played).isdisjoint(range(gaps[0], gaps[-1]))


def test_a_server_that_is_slower_than_speech_is_waited_for_once(
    browser_page: Page, server: Server
) -> None:
    """It is named, and enough is collected to play the rest in one go."""

    def chunks() -> Iterator[NDArray[np.int16]]:
        for _ in range(25):
            yield noise(0.1)
            browser_page.wait_for_timeout(180)

    half = {"text_start": 0, "text_end": len(SENTENCE) // 2, "start": 0, "end": 1.25}
    act_as_server(browser_page, chunks(), rtf=1.8, words=[half])
    speech_page = opened(browser_page, server)
    browser_page.evaluate(NOTE_STATUS)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    slow = "Waiting for sound: the server is slower than speech, 0."
    named = [sentence for _, sentence in said(browser_page) if sentence.startswith(slow)]
    assert any(re.search(r" It goes on in about \d+ s\.$", sentence) for sentence in named)
    expect(speech_page.status()).to_contain_text("Done. The server is slower than speech")


def test_the_first_sound_is_measured_where_it_leaves_the_device(
    browser_page: Page, server: Server
) -> None:
    browser_page.add_init_script(HURRIED_CLOCK)
    speech_page = opened(browser_page, server)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert metrics["ttfpSeconds"] < metrics["audibleSeconds"]


def test_a_headphones_buttons_pause_continue_and_stop(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(KEEP_MEDIA_ACTIONS)
    speech_page = opened(browser_page, server)

    def press(action: str) -> None:
        browser_page.evaluate("(action) => window.mediaActions[action]()", action)

    def media() -> list[str]:
        return list(
            browser_page.evaluate(
                "[navigator.mediaSession.playbackState, navigator.mediaSession.metadata?.title,"
                " navigator.mediaSession.metadata?.artist]"
            )
        )

    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    assert media()[0] == "playing"
    assert media()[1].startswith("Good morning. The train")
    assert media()[2] == "Clara"
    press("pause")
    expect(speech_page.status()).to_have_text("Paused.")
    assert media()[0] == "paused"
    browser_page.wait_for_timeout(200)  # for reports that were on their way
    heard = speech_page.metrics()["playedFrames"]
    browser_page.wait_for_timeout(500)
    assert speech_page.metrics()["playedFrames"] == heard
    press("play")
    speech_page.wait_for_state("done")
    assert media()[0] == "none"
    np.testing.assert_array_equal(speech_page.played(), whole(server, speech_page))
    press("play")  # again, from the start
    speech_page.wait_for_state("playing")
    press("stop")
    speech_page.wait_for_state("stopped")


@pytest.mark.thorough
def test_the_tab_says_that_it_speaks(speech_page: SpeechPage) -> None:
    page = speech_page.page
    icon = "document.querySelector('link[rel~=icon]').href"
    title, resting = page.title(), page.evaluate(icon)
    speech_page.write(SENTENCE)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    assert page.title() == f"Speaking · {title}"
    assert page.evaluate(icon) != resting
    speech_page.press("Pause")
    expect(page).to_have_title(title)
    speech_page.press("Continue")
    speech_page.wait_for_state("done")
    assert (page.title(), page.evaluate(icon)) == (title, resting)


def announced(speech_page: SpeechPage, speak: Callable[[], Any]) -> list[list[str]]:
    speech_page.page.evaluate(NOTE_ANNOUNCEMENTS)
    speak()
    return list(speech_page.page.evaluate("window.announced"))


def test_a_screen_reader_is_silent_while_the_page_speaks(speech_page: SpeechPage) -> None:
    def speak() -> None:
        speech_page.write(SENTENCE)
        speech_page.press("Speak")
        speech_page.wait_for_state("done")

    told = announced(speech_page, speak)
    assert [state for state, _ in told] == ["done"]
    assert told[0][1].startswith("Done.")


def test_an_error_in_mid_speech_is_announced_after_the_sound(
    browser_page: Page, server: Server
) -> None:
    gate = Gate(browser_page, SECOND)
    speech_page = opened(browser_page, server)

    def speak() -> None:
        speech_page.press("Speak")
        gate.cut_when_full()
        browser_page.wait_for_function("window.cantata.state === 'error'")

    told = announced(speech_page, speak)
    assert {state for state, _ in told} == {"error"}
    assert ["error", BROKEN] in told
