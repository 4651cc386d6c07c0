"""The page in a real browser: what the listener hears is what the server made."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, WebSocketRoute

from .asr import transcribe, word_error_rate
from .server import Server, wait_until
from .speech_page import SpeechPage

pytestmark = pytest.mark.e2e

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Good morning. The train to the coast leaves at half past nine.",
)
LONG_TEXT = " ".join(SENTENCES * 16)
WORST_WER = 0.4
STOP_DEADLINE_S = 10.0
BYTES_BEFORE_STALL = 12_000  # a quarter of a second


def test_the_page_plays_exactly_what_the_api_returns(
    speech_page: SpeechPage, server: Server, tell: list[str]
) -> None:
    speech_page.choose(speed=1.1, seed=7)
    heard = []
    for sentence in SENTENCES:
        speech_page.write(sentence)
        speech_page.press("Speak")
        speech_page.wait_for_state("done")
        metrics = speech_page.metrics()
        tell.append(json.dumps({"text": sentence, **metrics}))

        played = speech_page.played()
        answer = server.speech(input=sentence, response_format="pcm", **speech_page.chosen())
        assert answer.status_code == 200, answer.text
        np.testing.assert_array_equal(played, np.frombuffer(answer.content, dtype="<i2"))
        assert metrics["playedFrames"] == metrics["receivedFrames"] == len(played)
        assert metrics["server"]["samples"] == len(played)
        assert 0 < metrics["ttfpSeconds"] < metrics["audibleSeconds"]
        heard.append(transcribe(played, metrics["sampleRate"]))

    error_rate = word_error_rate(SENTENCES, heard)
    tell.append(f"heard {heard}, word error rate {error_rate:.2f}")
    assert error_rate <= WORST_WER, heard


def test_stop_ends_the_sound_and_the_work(speech_page: SpeechPage, server: Server) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    assert server.gauge("cantata_requests_running") >= 1
    speech_page.press("Stop")
    speech_page.wait_for_state("stopped")
    metrics = speech_page.metrics()
    assert 0 < metrics["playedFrames"] <= metrics["receivedFrames"]
    wait_until(
        lambda: server.gauge("cantata_requests_running") == 0,
        STOP_DEADLINE_S,
        "the server gives up the stopped request",
    )
    assert speech_page.metrics() == metrics, "sound arrived or was played after the stop"


def test_a_new_sentence_cuts_off_the_old_one(speech_page: SpeechPage, server: Server) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.press("Speak")
    speech_page.wait_for_state("playing")
    speech_page.write(SENTENCES[0])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert metrics["playedFrames"] == metrics["server"]["samples"] == len(speech_page.played())
    wait_until(
        lambda: server.gauge("cantata_requests_running") == 0,
        STOP_DEADLINE_S,
        "the server gives up the sentence that was cut off",
    )


def test_the_keyboard_is_enough(speech_page: SpeechPage) -> None:
    speech_page.write(LONG_TEXT)
    speech_page.page.keyboard.press("Control+Enter")
    speech_page.wait_for_state("playing")
    speech_page.page.keyboard.press("Escape")
    speech_page.wait_for_state("stopped")
    assert speech_page.status() == "Stopped."


def test_the_download_is_what_was_played(speech_page: SpeechPage, tmp_path: Path) -> None:
    speech_page.write(SENTENCES[0])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    with speech_page.page.expect_download() as download:
        speech_page.press("Download WAV")
    saved = tmp_path / "saved.wav"
    download.value.save_as(saved)
    samples, sample_rate = soundfile.read(saved, dtype="int16")
    assert sample_rate == speech_page.metrics()["sampleRate"]
    np.testing.assert_array_equal(samples, speech_page.played())


def test_a_stall_is_counted_and_costs_no_sample(
    browser_page: Page, server: Server, tell: list[str]
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
    browser_page.goto(server.url)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    speech_page.write(SENTENCES[1])
    speech_page.press("Speak")
    browser_page.wait_for_function("window.cantata.metrics.underruns >= 1")
    holding = False
    for message in held:
        routes[0].send(message)
    speech_page.wait_for_state("done")

    metrics = speech_page.metrics()
    tell.append(json.dumps(metrics))
    assert metrics["starvedFrames"] > 0
    assert metrics["playedFrames"] == metrics["server"]["samples"] == len(speech_page.played())
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    assert speech_page.metrics()["reserveSeconds"] > metrics["reserveSeconds"]


def test_a_page_without_worklets_plays_the_same(browser_page: Page, server: Server) -> None:
    """As over plain HTTP from another machine, where browsers have no AudioWorklet."""
    browser_page.add_init_script("delete BaseAudioContext.prototype.audioWorklet")
    browser_page.goto(server.url)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    speech_page.write(SENTENCES[0])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    played = speech_page.played()
    assert len(played) == speech_page.metrics()["server"]["samples"]
    answer = server.speech(input=SENTENCES[0], response_format="pcm", **speech_page.chosen())
    np.testing.assert_array_equal(played, np.frombuffer(answer.content, dtype="<i2"))


def test_the_menu_lists_the_servers_voices(speech_page: SpeechPage, server: Server) -> None:
    voices = server.get("/v1/audio/voices").json()["voices"]
    assert speech_page.voices() == [voice["id"] for voice in voices]


def test_an_empty_text_is_answered_with_a_sentence(speech_page: SpeechPage) -> None:
    speech_page.write("   ")
    speech_page.press("Speak")
    assert speech_page.status() == "Write something first."


def test_no_request_leaves_the_origin(browser_page: Page, server: Server) -> None:
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.on("websocket", lambda socket: asked.append(socket.url))
    refused: list[str] = []
    browser_page.on(
        "response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None
    )
    browser_page.goto(server.url)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    speech_page.write(SENTENCES[0])
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts == {urlsplit(server.url).netloc}
    assert refused == []
