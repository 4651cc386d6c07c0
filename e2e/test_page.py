"""Speaking from the page in a real browser: what is heard is what the server made."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import av
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Page, WebSocketRoute, expect

from cantata_bench.asr import transcribe, word_error_rate
from timed import timed

from .continuity import first_fault
from .server import STOP_DEADLINE_S, Server, wait_until
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Good morning. The train leaves at nine.",
)
SHORT = "The gate is open."
LONG_TEXT = " ".join(SENTENCES * 16)
WORST_WER = 0.4
MAX_SECONDS_TO_SILENCE = 0.15
TURNS_TO_LEARN = 2  # one underrun, and the reserve has doubled: 80 to 160 ms
MARK_LAG_S = 0.3
BYTES_BEFORE_STALL = 12_000  # a quarter of a second

# A sound device that takes 48 kHz and nothing else.
STUBBORN_DEVICE = """
const Native = window.AudioContext;
window.AudioContext = class extends Native {
  constructor(options = {}) {
    if (options.sampleRate) throw new DOMException("not this rate", "NotSupportedError");
    super({ ...options, sampleRate: 48000 });
  }
};
"""


def test_the_page_plays_exactly_what_the_api_returns(
    speech_page: SpeechPage, server: Server, figures: Callable[..., None]
) -> None:
    speech_page.choose_speed(1.1)
    heard = []
    for sentence in SENTENCES:
        speech_page.write(sentence)
        speech_page.press("Speak")
        speech_page.wait_for_state("done")
        metrics = speech_page.metrics()
        played = speech_page.played()
        answer = server.speech(input=sentence, response_format="pcm", **speech_page.chosen())
        assert answer.status_code == 200, answer.text
        assert first_fault(played, np.frombuffer(answer.content, dtype="<i2")) is None
        assert metrics["playedFrames"] == metrics["receivedFrames"] == len(played)
        assert metrics["server"]["samples"] == len(played)
        assert 0 < metrics["ttfpSeconds"] < metrics["audibleSeconds"]
        heard.append(transcribe(played, metrics["sampleRate"]))

    assert word_error_rate(SENTENCES, heard) <= WORST_WER, heard


@timed(one_sided=True)
def test_one_stream_is_heard_without_a_gap(
    speech_page: SpeechPage, figures: Callable[..., None]
) -> None:
    """If something holds the stream up once, the player learns to wait longer."""
    speech_page.write(SENTENCES[1])
    for turn in range(1, 1 + TURNS_TO_LEARN):
        speech_page.press("Speak")
        speech_page.wait_for_state("done")
        figures(test="one stream", what=f"sentence {turn}", **speech_page.figures())
        metrics = speech_page.metrics()
        if metrics["starvedFrames"] == 0:
            break
    assert metrics["starvedFrames"] == metrics["underruns"] == 0


def test_stop_ends_the_sound_and_the_work(
    speech_page: SpeechPage, server: Server, figures: Callable[..., None]
) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    assert server.gauge("cantata_requests_running") >= 1
    speech_page.press("Stop")
    speech_page.wait_for_state("stopped")
    metrics = speech_page.metrics()
    assert 0 < metrics["playedFrames"] <= metrics["receivedFrames"]
    figures(test="stop", heard=f"silence after {1000 * metrics['silenceSeconds']:.0f} ms")
    assert metrics["silenceSeconds"] > 0
    wait_until(server.is_idle, STOP_DEADLINE_S, "the server gives up the stopped request")
    assert speech_page.metrics() == metrics, "sound arrived or was played after the stop"


@timed(one_sided=True)
def test_stop_is_silence_at_once(speech_page: SpeechPage) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    speech_page.press("Stop")
    speech_page.wait_for_state("stopped")
    assert speech_page.metrics()["silenceSeconds"] <= MAX_SECONDS_TO_SILENCE


def test_a_new_sentence_cuts_off_the_old_one(speech_page: SpeechPage, server: Server) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert metrics["playedFrames"] == metrics["server"]["samples"] == len(speech_page.played())
    wait_until(server.is_idle, STOP_DEADLINE_S, "the server gives up what was cut off")


def test_the_keyboard_is_enough(speech_page: SpeechPage) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.page.keyboard.press("Control+Enter")
    speech_page.wait_for_state("playing")
    speech_page.page.keyboard.press("Escape")
    speech_page.wait_for_state("stopped")
    expect(speech_page.status()).to_have_text("Stopped.")


def test_the_download_is_what_was_played(speech_page: SpeechPage, tmp_path: Path) -> None:
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    with speech_page.page.expect_download() as download:
        speech_page.press("Download")
    saved = tmp_path / "saved.wav"
    download.value.save_as(saved)
    samples, sample_rate = soundfile.read(saved, dtype="int16")
    assert sample_rate == speech_page.metrics()["sampleRate"]
    np.testing.assert_array_equal(samples, speech_page.played())


@pytest.mark.thorough
def test_the_foot_leads_to_what_is_beside_the_page(page: Page, server: Server) -> None:
    links = page.locator(".foot > a")
    expect(links).to_have_text(["Docs", "API", "Gradio", "Apache-2.0"])
    read = [server.get(f"/{link.get_attribute('href')}") for link in links.all()]
    assert all(one.is_success for one in read)
    assert read[-1].text == Path(__file__).parents[1].joinpath("LICENSE").read_text("utf-8")
    expect(page.locator(".foot")).to_contain_text(version("cantata"))


def test_another_format_is_the_same_speech(speech_page: SpeechPage, tmp_path: Path) -> None:
    speech_page.open_settings()
    speech_page.page.get_by_label("Download as").select_option("flac")
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    speech_page.choose_speed(2)  # for the next one, not for the file of this one
    with speech_page.page.expect_download() as download:
        speech_page.press("Download")
    assert download.value.suggested_filename == "The gate is open.flac"
    saved = tmp_path / "saved.flac"
    download.value.save_as(saved)
    with av.open(saved) as file:
        samples = np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)])
    np.testing.assert_array_equal(samples, speech_page.played())


def test_a_replay_is_the_same_sound_and_asks_nothing_of_the_server(
    speech_page: SpeechPage,
) -> None:
    speech_page.write(SENTENCES[1])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    first = speech_page.played()
    said: list[str | bytes] = []
    speech_page.page.on("websocket", lambda socket: said.append(socket.url))
    with speech_page.turn():
        speech_page.press("Replay")
    np.testing.assert_array_equal(speech_page.played(), first)
    speech_page.press_once_playing("Stop")
    speech_page.press("Replay")
    speech_page.wait_for_state("stopped")
    speech_page.press("Replay")
    speech_page.wait_for_state("done")
    np.testing.assert_array_equal(speech_page.played(), first)
    assert said == []


def test_words_are_marked_in_order_and_not_before_they_are_heard(speech_page: SpeechPage) -> None:
    speak_and_check_marks(speech_page, late_s=float("inf"))


@timed(one_sided=True)
def test_words_are_marked_when_they_are_heard(speech_page: SpeechPage) -> None:
    speak_and_check_marks(speech_page, late_s=MARK_LAG_S)


def speak_and_check_marks(speech_page: SpeechPage, late_s: float) -> None:
    """A mark stands from when its word is heard until the next is, and `late_s` more at most."""
    text = f"  {SENTENCES[0]}"
    speech_page.note_marked_words()
    speech_page.write(text)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    words = speech_page.words()
    assert " ".join(word["text"] for word in words) == SENTENCES[0].rstrip(".")
    assert all(text[word["from"] : word["to"]] == word["text"] for word in words)

    marked = speech_page.marked_words()
    assert len(marked) >= len(words) // 2
    coming = iter([*pairwise(words), (words[-1], {"start": float("inf")})])
    for text_of_mark, heard in marked:
        word, after = next(pair for pair in coming if pair[0]["text"] == text_of_mark)
        assert word["start"] <= heard
        assert heard <= after["start"] + late_s


def test_a_reload_in_mid_speech_frees_the_server(speech_page: SpeechPage, server: Server) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    assert server.gauge("cantata_requests_running") >= 1
    speech_page.page.reload()
    wait_until(server.is_idle, STOP_DEADLINE_S, "the server stops work that has no listener")
    speech_page.wait_until_ready()


def test_a_device_with_a_rate_of_its_own_loses_no_sample(
    browser_page: Page, server: Server
) -> None:
    browser_page.add_init_script(STUBBORN_DEVICE)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert (metrics["sampleRate"], metrics["deviceRate"]) == (24_000, 48_000)
    answer = server.speech(input=SHORT, response_format="pcm", **speech_page.chosen())
    np.testing.assert_array_equal(speech_page.played(), np.frombuffer(answer.content, dtype="<i2"))


def act_as_server(
    page: Page, sound: NDArray[np.int16], words: Sequence[dict[str, float]] = ()
) -> None:
    """The test answers every text with `sound` ([N, C], 48 kHz) and `words`."""
    start = {"type": "audio.start", "sample_rate": 48_000, "channels": sound.shape[1]}

    def answer(route: WebSocketRoute) -> None:
        def reply(message: str | bytes) -> None:
            if json.loads(message)["type"] != "input.done":
                return
            route.send(json.dumps(start))
            route.send(json.dumps({"type": "audio.timestamps", "words": words}))
            for part in np.split(sound, 10):
                route.send(part.astype("<i2").tobytes())
            route.send(json.dumps({"type": "audio.done", "samples": len(sound), "rtf": 0.1}))
            route.send(json.dumps({"type": "input.spoken"}))

        route.on_message(reply)

    page.route_web_socket("**/v1/audio/speech/stream", answer)


def test_stereo_is_played_and_saved_as_stereo(
    browser_page: Page, server: Server, tmp_path: Path
) -> None:
    """No model that ships is stereo."""
    sound = np.random.default_rng(7).integers(-20_000, 20_000, (24_000, 2), dtype=np.int16)
    act_as_server(browser_page, sound)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    np.testing.assert_array_equal(speech_page.played(), sound.ravel())
    with browser_page.expect_download() as download:
        speech_page.press("Download")
    download.value.save_as(tmp_path / "stereo.wav")
    saved, rate = soundfile.read(tmp_path / "stereo.wav", dtype="int16")
    assert rate == 48_000
    np.testing.assert_array_equal(saved, sound)


def test_a_long_text_scrolls_to_the_word_that_is_heard(browser_page: Page, server: Server) -> None:
    text = f"{LONG_TEXT} Zanzibar."
    at = text.index("Zanzibar")
    word = {"start": 0.0, "end": 4.0, "text_start": at, "text_end": at + len("Zanzibar")}
    sound = np.full((4 * 48_000, 1), 1_000, dtype=np.int16)
    act_as_server(browser_page, sound, [word])
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.text.evaluate("(box, text) => (box.value = text)", text)
    speech_page.press("Speak")
    browser_page.wait_for_function("document.querySelector('[data-role=shadow] mark') !== null")
    mark = browser_page.locator("[data-role=shadow] mark").bounding_box()
    box = speech_page.text.bounding_box()
    assert mark is not None
    assert box is not None
    assert speech_page.text.evaluate("box => box.scrollTop") > 0
    assert box["y"] <= mark["y"] <= box["y"] + box["height"] - mark["height"]
    assert mark["width"] > 40


def test_a_full_server_is_told_in_a_sentence(browser_page: Page, server: Server) -> None:
    error = {"message": "16 requests are running", "code": "rate_limit_exceeded"}

    def refuse(route: WebSocketRoute) -> None:
        route.on_message(lambda _: route.send(json.dumps({"type": "error", "error": error})))

    browser_page.route_web_socket("**/v1/audio/speech/stream", refuse)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.press("Speak")
    expect(speech_page.status()).to_have_text("The server is full at the moment. Try again soon.")
    expect(browser_page.get_by_role("button", name="Speak", exact=True)).to_be_enabled()


def test_a_stall_is_counted_and_costs_no_sample(
    browser_page: Page, server: Server, figures: Callable[..., None]
) -> None:
    """The stream is held back in mid-speech until the sound has run dry."""
    held: list[str | bytes] = []
    holding = True

    def pass_on(route: WebSocketRoute) -> None:
        upstream = route.connect_to_server()
        passed = 0

        def forward(message: str | bytes) -> None:
            nonlocal passed
            if holding and passed >= BYTES_BEFORE_STALL:
                held.append(message)
                return
            passed += len(message) if isinstance(message, bytes) else 0
            route.send(message)

        upstream.on_message(forward)
        routes.append(route)

    routes: list[WebSocketRoute] = []
    browser_page.route_web_socket("**/v1/audio/speech/stream", pass_on)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write(SENTENCES[1])
    speech_page.press("Speak")
    browser_page.wait_for_function("window.cantata.metrics.underruns >= 1")
    holding = False
    for message in held:
        routes[0].send(message)
    speech_page.wait_for_state("done")

    metrics = speech_page.metrics()
    figures(test="stream held back", **speech_page.figures())
    assert metrics["starvedFrames"] > 0
    assert metrics["playedFrames"] == metrics["server"]["samples"] == len(speech_page.played())
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    assert speech_page.metrics()["reserveSeconds"] > metrics["reserveSeconds"]


def test_a_page_without_worklets_plays_the_same(browser_page: Page, server: Server) -> None:
    """As over plain HTTP from another machine, where browsers have no AudioWorklet."""
    browser_page.add_init_script("delete BaseAudioContext.prototype.audioWorklet")
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    played = speech_page.played()
    assert len(played) == speech_page.metrics()["server"]["samples"]
    answer = server.speech(input=SHORT, response_format="pcm", **speech_page.chosen())
    np.testing.assert_array_equal(played, np.frombuffer(answer.content, dtype="<i2"))


def test_the_menu_lists_the_servers_voices(speech_page: SpeechPage, server: Server) -> None:
    """Those of the chosen model, and of another one once that is chosen."""
    voices = server.get("/v1/audio/voices").json()["voices"]
    speech_page.open_settings()
    for model in dict.fromkeys(voice["model"] for voice in voices):
        speech_page.page.get_by_label("Model", exact=True).select_option(model)
        offered = [voice["id"] for voice in voices if voice["model"] == model]
        assert speech_page.options("Voice") == offered


def test_an_empty_text_is_answered_with_a_sentence(speech_page: SpeechPage) -> None:
    speech_page.write("   ")
    speech_page.press("Speak")
    expect(speech_page.status()).to_have_text("Write something first.")


def test_no_request_leaves_the_origin(browser_page: Page, server: Server) -> None:
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.on("websocket", lambda socket: asked.append(socket.url))
    refused: list[str] = []
    browser_page.on(
        "response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None
    )
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(server.url).netloc}
    assert refused == []


def test_text_is_spoken_while_it_is_typed(speech_page: SpeechPage) -> None:
    first, rest = "When the rain stops, ", "we walk down to the harbour. Then we eat"
    sent: list[str] = []
    speech_page.page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda message: sent.append(str(message))),
    )
    speech_page.page.get_by_role("switch", name="Speak while I type").click()
    expect(speech_page.text).to_be_focused()
    speech_page.page.keyboard.type(first)
    speech_page.page.wait_for_function("window.cantata.metrics.receivedFrames > 0")
    assert '{"type":"input.text","text":"rain "}' in sent
    assert not any("walk" in message for message in sent)
    speech_page.page.keyboard.type(rest)
    speech_page.page.keyboard.press("Control+Enter")
    speech_page.wait_for_state("done")
    words = speech_page.words()
    assert [word["text"] for word in words] == (first + rest).replace(",", "").replace(
        ".", ""
    ).split()
    assert all((first + rest)[word["from"] : word["to"]] == word["text"] for word in words)
    starts = [word["start"] for word in words]
    assert starts == sorted(starts)
    metrics = speech_page.metrics()
    assert metrics["playedFrames"] == metrics["receivedFrames"] == len(speech_page.played())


def test_escape_ends_typing_and_the_next_sentence_is_spoken_whole(
    speech_page: SpeechPage, server: Server
) -> None:
    speech_page.page.get_by_role("switch", name="Speak while I type").click()
    speech_page.page.keyboard.type("We do not get to the end of this, ")
    speech_page.page.wait_for_function("window.cantata.metrics.receivedFrames > 0")
    speech_page.page.keyboard.press("Escape")
    speech_page.wait_for_state("stopped")
    expect(speech_page.page.get_by_role("switch", name="Speak while I type")).not_to_be_checked()
    speech_page.write(SHORT)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    answer = server.speech(input=SHORT, response_format="pcm", **speech_page.chosen())
    np.testing.assert_array_equal(speech_page.played(), np.frombuffer(answer.content, dtype="<i2"))
