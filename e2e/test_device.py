"""What reaches the sound device: recorded behind the page's player, and judged on its own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, WebSocketRoute

from .conftest import KNOWN
from .continuity import first_fault
from .device import Device, deliver_whole
from .judges import speech, waveform
from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

VOICES = ("clara", "ewan")
SENTENCE = 4
PAUSE_S = 1.0
PAUSED_TEXT = f"Close the window. [pause {PAUSE_S:g}s] Have you read the latest book?"
PAUSED_WORD = "Have"
CLOSE_S = 0.08
RATE = 24_000
PACKETS = np.random.default_rng(7).integers(-9_000, 9_000, (6, RATE // 5)).astype("<i2")
"""Of 200 ms, more than the player collects before it starts."""
PACKET_EVERY_MS = 200
START_TURNS = 12
MAX_START_S = 0.3
"""The packet's way into the browser, and the device's buffers; found: 20 ms."""
MAX_LATE_S = 0.05
"""How late a timer of an undisturbed page fires."""
WATCH_TIMER = """
() => {
  let due = performance.now();
  let latest = 0;
  const timer = setInterval(() => {
    const now = performance.now();
    latest = Math.max(latest, now - due - 10);
    due = now;
  }, 10);
  window.stopWatchingTimer = () => {
    clearInterval(timer);
    return latest / 1000;
  };
}
"""
STILL = 0.02
"""Above what is left of a fade when Stop was pressed."""


@pytest.fixture(scope="module")
def model() -> str:
    """The judges know how its voices speak."""
    return KNOWN


@pytest.fixture
def device(browser_page: Page) -> Device:
    return Device.install(browser_page)


@pytest.fixture
def delivered_whole(browser_page: Page) -> None:
    deliver_whole(browser_page)


@pytest.fixture
def page_of_device(
    browser_page: Page, server: Server, device: Device, delivered_whole: None
) -> SpeechPage:
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    return speech_page


def speak(speech_page: SpeechPage, device: Device, text: str) -> NDArray[np.float32]:
    """Speak one text, and return what the device got."""
    device.clear()
    speech_page.write(text)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    device.wait_for_silence()
    left, right = device.channels()
    assert np.array_equal(left, right), "the two loudspeakers get different sound"
    return device.sound()


def padded(sound: NDArray[np.float32], frames: int) -> NDArray[np.float32]:
    """The device's recording has no silence of its own at its end; a file has."""
    return np.pad(sound, (0, max(0, frames - len(sound))))


def test_the_device_gets_the_servers_speech_and_nothing_else(
    page_of_device: SpeechPage, device: Device, server: Server, figures: Callable[..., None]
) -> None:
    """Several turns: what one leaves behind must not reach the next."""
    text = speech.short_form()[SENTENCE]
    for voice in (*VOICES, VOICES[0]):
        page_of_device.page.get_by_label("Voice", exact=True).select_option(voice)
        heard = speak(page_of_device, device, text)
        answer = server.speech(input=text, response_format="pcm", **page_of_device.chosen())
        sent = np.trim_zeros(np.frombuffer(answer.content, dtype="<i2"))
        fault = first_fault(np.round(heard * 32768).astype(np.int16), sent)
        figures(test="behind the player", what=voice, heard="whole" if fault is None else fault)
        # The judges first: what they say of it names the defect.
        whole = padded(heard, len(np.frombuffer(answer.content, dtype="<i2")))
        found = waveform.faults(whole, device.rate)
        found += speech.faults(text, voice, whole, device.rate)
        assert not found, f"the device gets {'; '.join(found)}"
        assert fault is None
        assert page_of_device.metrics()["starvedFrames"] == 0


def test_sound_begins_soon_after_its_first_packet(
    browser_page: Page, server: Server, device: Device, figures: Callable[..., None]
) -> None:
    """One undisturbed turn suffices; a machine that has none is too busy to tell."""
    sent_at: list[float] = []

    def answer(route: WebSocketRoute) -> None:
        def reply(message: str | bytes) -> None:
            if json.loads(message)["type"] != "input.done":
                return
            route.send(json.dumps({"type": "audio.start", "sample_rate": RATE, "channels": 1}))
            sent_at.append(time.time())
            for packet in PACKETS:
                route.send(packet.tobytes())
                browser_page.wait_for_timeout(PACKET_EVERY_MS)
            samples = sum(len(packet) for packet in PACKETS)
            route.send(json.dumps({"type": "audio.done", "samples": samples}))
            route.send(json.dumps({"type": "input.spoken"}))

        route.on_message(reply)

    browser_page.route_web_socket("**/v1/audio/speech/stream", answer)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    delays_s, late_s = [], []
    for _ in range(START_TURNS):
        browser_page.evaluate(WATCH_TIMER)
        speak(speech_page, device, "Hello.")
        delays_s.append(device.first_sound_at_s() - sent_at[-1])
        late_s.append(float(browser_page.evaluate("window.stopWatchingTimer()")))
        if 0 < delays_s[-1] <= MAX_START_S:
            break
    what = f"after {1000 * min(delays_s):.0f} ms"
    figures(test="behind the player", what="first packet to sound", heard=what)
    if min(delays_s) > MAX_START_S and min(late_s) > MAX_LATE_S:
        pytest.skip(f"sound begins {what}, but the page's timers are {min(late_s):.2f} s late")
    assert 0 < min(delays_s) <= MAX_START_S, f"sound begins {what}"


def test_sound_resumes_after_a_pause_where_its_word_begins(
    page_of_device: SpeechPage, device: Device
) -> None:
    heard = speak(page_of_device, device, PAUSED_TEXT)
    word = next(one for one in page_of_device.words() if one["text"] == PAUSED_WORD)
    silences = waveform.pauses(heard, device.rate, PAUSE_S / 2)
    assert len(silences) == 1
    ((start, end),) = silences
    late_s = word["start"] - end
    assert abs(late_s) <= CLOSE_S, f"{PAUSED_WORD!r} is {late_s:.2f} s late"
    assert PAUSE_S - 0.05 <= end - start <= PAUSE_S + 0.5


def test_after_stop_the_device_gets_silence(page_of_device: SpeechPage, device: Device) -> None:
    page_of_device.write(" ".join(speech.short_form()[:3]))
    device.clear()
    page_of_device.press("Speak")
    page_of_device.wait_for_state("playing")
    page_of_device.press("Stop")
    page_of_device.wait_for_state("stopped")
    device.wait_for_silence(0.5)
    heard = device.sound()
    assert list(waveform.holes(heard[: -round(0.05 * device.rate)], device.rate)) == []
    assert np.abs(np.diff(heard)).max() <= waveform.MAX_JUMP
    assert abs(heard[-1]) <= STILL, "the sound was cut off instead of faded"
