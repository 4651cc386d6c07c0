"""The page in Debian's Firefox: the same samples, and the same stop."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from timed import timed

from .continuity import first_fault
from .firefox import Firefox, find_firefox, null_sound, running_firefox
from .server import READY_DEADLINE_S, STOP_DEADLINE_S, Server, wait_until
from .speech_page import PLAYED_AS_BASE64, turn_figures
from .test_page import LONG_TEXT, MAX_SECONDS_TO_SILENCE, SENTENCES

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SPEECH_DEADLINE_S = 120.0
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


def test_stop_in_firefox_ends_the_sound_and_the_work(page: Firefox, server: Server) -> None:
    speak(page, LONG_TEXT)
    wait_for_state(page, "playing")
    page.click("[data-role=stop]")
    wait_for_state(page, "stopped")
    metrics = page.ask("window.cantata.metrics")
    assert metrics["silenceSeconds"] > 0
    wait_until(server.is_idle, STOP_DEADLINE_S, "the server gives up the stopped request")


@timed(one_sided=True)
def test_stop_in_firefox_is_silence_at_once(page: Firefox) -> None:
    speak(page, LONG_TEXT)
    wait_for_state(page, "playing")
    page.click("[data-role=stop]")
    wait_for_state(page, "stopped")
    assert page.ask("window.cantata.metrics")["silenceSeconds"] <= MAX_SECONDS_TO_SILENCE
