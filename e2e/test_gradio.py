"""The Gradio component in a real browser, in the server's own app and in somebody else's; and
`gradio_client`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import httpx
import numpy as np
import pytest
from gradio_client import Client  # type: ignore[import-untyped]
from gradio_client.exceptions import AppError  # type: ignore[import-untyped]
from playwright.sync_api import Locator, Page, expect

from cantata_bench.server import end

from .conftest import GIVEN_URL, ROOT
from .server import READY_DEADLINE_S, Server, wait_until
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

COMPONENT = "document.querySelector('[data-role=speech]')?.cantata"
SENTENCE = "The gate is open."
MESSAGE = "we walked along the river, and then over the bridge, "
LAST_WORDS = "while I wrote it."


class GradioPage(SpeechPage):
    """Where the component is what speaks."""

    def wait_until_ready(self) -> None:
        self.page.wait_for_function(f"(window.cantata = {COMPONENT}) !== undefined")

    def status(self, region: str = "Speech") -> Locator:
        return super().status(region)


@pytest.fixture(scope="module")
def chat(server: Server, other_origin: str) -> Iterator[str]:
    """The address of the example, which runs on an origin of its own."""
    if GIVEN_URL:
        pytest.skip("the server that is given does not allow the example's origin")
    environment = {
        **os.environ,
        "CANTATA_URL": server.url,
        "GRADIO_SERVER_PORT": other_origin.rsplit(":", 1)[1],
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
    example = [sys.executable, str(ROOT / "examples" / "gradio_chat.py")]
    process = subprocess.Popen(example, env=environment, stdout=subprocess.DEVNULL)

    def is_served() -> bool:
        assert process.poll() is None, "the example ended"
        try:
            return httpx.get(other_origin, timeout=READY_DEADLINE_S).is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(is_served, READY_DEADLINE_S, "the example is served")
        yield other_origin
    finally:
        end(process)


def test_an_answer_is_spoken_while_it_is_written(browser_page: Page, chat: str) -> None:
    page = GradioPage(browser_page)
    page.open(chat)
    written = browser_page.get_by_role("log").last
    browser_page.get_by_label("Message").fill(MESSAGE)
    browser_page.keyboard.press("Enter")
    page.wait_for_state("buffering", "playing")
    assert LAST_WORDS not in written.inner_text(), "sound came before the text was complete"
    expect(written).to_contain_text(LAST_WORDS, timeout=SPEECH_DEADLINE_MS)
    page.wait_for_state("done")

    metrics, words = page.metrics(), [word["text"] for word in page.words()]
    assert metrics["playedFrames"] == metrics["receivedFrames"] > metrics["sampleRate"]
    assert metrics["audibleSeconds"] > 0
    assert np.abs(page.played()).max() > 1_000
    assert words[:4] == ["You", "wrote", "we", "walked"]
    answer = f"You wrote, {MESSAGE} That is all, and you heard it {LAST_WORDS}"
    assert len(words) == len(answer.split())
    # An event that went to Python and back.
    seconds = metrics["playedFrames"] / metrics["sampleRate"]
    heard = browser_page.get_by_role("textbox", name="Heard")
    expect(heard).to_have_value(f"{seconds:.1f} s of speech", timeout=SPEECH_DEADLINE_MS)


def test_the_servers_own_app_plays_what_the_api_returns(browser_page: Page, server: Server) -> None:
    page = GradioPage(browser_page)
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    page.open(f"{server.url}/gradio")
    browser_page.get_by_label("Text", exact=True).first.fill(SENTENCE)
    for _ in range(2):  # the same text again is spoken again
        with page.turn():
            page.press("Speak")
    answer = server.speech(input=SENTENCE, response_format="pcm")
    np.testing.assert_array_equal(page.played(), np.frombuffer(answer.content, dtype="<i2"))
    page.press_once_playing("Stop")
    page.press("Speak")
    page.wait_for_state("stopped")
    elsewhere = [url for url in asked if not url.startswith((server.url, "data:", "blob:"))]
    assert elsewhere == []


def test_gradio_client_gets_a_file(server: Server, tmp_path: Path) -> None:
    client = Client(
        f"{server.url}/gradio/",
        download_files=tmp_path,
        verbose=False,
        httpx_kwargs={"timeout": SPEECH_DEADLINE_MS / 1000},
    )
    path = client.predict(SENTENCE, "", 1.0, "", api_name="/speak")
    with av.open(path) as file:
        assert file.format.name == "mp3"
        samples = sum(frame.samples for frame in file.decode(audio=0))
        rate = file.streams.audio[0].rate
    answer = server.speech(input=SENTENCE, response_format="pcm")
    assert samples / rate == pytest.approx(len(answer.content) / 2 / 24_000, abs=0.15)
    with pytest.raises(AppError, match="has no voice 'nobody'"):
        client.predict(SENTENCE, "nobody", 1.0, "", api_name="/speak")
    client.close()
