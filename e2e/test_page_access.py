"""Access to the page: API keys, a page that is served apart from its server, and no room."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile
from playwright.sync_api import Page, expect

from cantata_bench.server import end

from .own_server import AUTHORIZATION, KEY, Apart, OwnServer, enter_key
from .page_code import code_in, open_code
from .server import READY_DEADLINE_S, Server, wait_until
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

WRONG_KEY = "another-key-altogether"
SENTENCE = "The gate is open."
LONG_TEXT = "We are still talking, and there is nobody who listens. " * 40


@pytest.fixture(scope="module")
def locked_server(own_server: OwnServer) -> Server:
    """With a key and one place."""
    return own_server.server


@pytest.fixture(scope="module")
def page_apart(own_server: OwnServer) -> Iterator[Apart]:
    apart = own_server.apart
    command = [sys.executable, "-m", "cantata_web", "--api-base", own_server.url]
    process = subprocess.Popen([*command, "--port", str(apart.port)])

    def is_served() -> bool:
        assert process.poll() is None, "the page's process ended"
        try:
            return httpx.get(apart.allowed, timeout=60).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    try:
        wait_until(is_served, READY_DEADLINE_S, "the page is served")
        yield apart
    finally:
        end(process)


def speak_to_the_end(page: Page) -> None:
    speech_page = SpeechPage(page)
    speech_page.wait_until_ready()
    speech_page.write(SENTENCE)
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert len(speech_page.played()) == metrics["server"]["samples"] > 0


def test_the_page_asks_for_a_key_until_it_is_right_and_keeps_it(
    browser_page: Page, locked_server: Server
) -> None:
    browser_page.goto(locked_server.url)
    dialog = browser_page.get_by_role("dialog", name="API key")
    expect(dialog).to_contain_text("This server needs an API key.")
    enter_key(browser_page, WRONG_KEY)
    expect(dialog).to_contain_text("The server does not know this key.")
    enter_key(browser_page, KEY)
    expect(dialog).to_be_hidden()
    speak_to_the_end(browser_page)
    browser_page.reload()
    speak_to_the_end(browser_page)
    assert KEY not in browser_page.evaluate("JSON.stringify({...localStorage})")


def test_without_a_key_the_page_says_what_is_missing(
    browser_page: Page, locked_server: Server
) -> None:
    browser_page.goto(locked_server.url)
    browser_page.get_by_role("button", name="Cancel").click()
    expect(browser_page.get_by_text("The server needs an API key.")).to_be_visible()


def test_a_key_that_is_missed_at_the_socket_is_asked_for_and_the_text_is_spoken(
    browser_page: Page, locked_server: Server
) -> None:
    browser_page.goto(locked_server.url)
    enter_key(browser_page, KEY)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    browser_page.evaluate("sessionStorage.clear()")
    speech_page.write(SENTENCE)
    speech_page.press("Speak")
    enter_key(browser_page, KEY)
    speech_page.wait_for_state("done")


def test_a_key_that_is_missed_at_the_start_of_a_talk_is_asked_for(
    browser_page: Page, locked_server: Server
) -> None:
    browser_page.goto(locked_server.url)
    enter_key(browser_page, KEY)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    browser_page.evaluate("sessionStorage.clear()")
    speech_page.tab("Talk")
    speech_page.press("Start talking")
    enter_key(browser_page, KEY)
    browser_page.wait_for_function("window.cantata.talk.state === 'listening'")
    speech_page.press("Stop talking")


def test_code_reads_the_key_from_the_environment(
    browser_page: Page, locked_server: Server, tmp_path: Path
) -> None:
    browser_page.goto(locked_server.url)
    enter_key(browser_page, KEY)
    speak_to_the_end(browser_page)
    open_code(browser_page)
    languages = browser_page.get_by_label("Language").locator("option").all_inner_texts()
    assert len(languages) == 4
    for language in languages:
        assert KEY not in code_in(browser_page, language)
    done = subprocess.run(
        ["bash", "-euc", code_in(browser_page, "curl")],
        cwd=tmp_path,
        env={**os.environ, "CANTATA_API_KEY": KEY, "no_proxy": "*"},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    samples, _ = soundfile.read(tmp_path / "cantata.wav", dtype="int16")
    np.testing.assert_array_equal(samples, SpeechPage(browser_page).played())


def test_streams_without_room_show_what_the_server_answered(
    browser_page: Page, locked_server: Server
) -> None:
    browser_page.goto(locked_server.url)
    enter_key(browser_page, KEY)
    speech_page = SpeechPage(browser_page)
    speech_page.wait_until_ready()
    speech_page.tab("Lab")
    speech_page.streams.fill("4")
    # One place, taken by a client that does not read, and one to wait in.
    with httpx.stream(
        "POST",
        f"{locked_server.url}/v1/audio/speech",
        json={"input": LONG_TEXT, "response_format": "pcm"},
        headers=AUTHORIZATION,
        timeout=60,
    ) as taken:
        assert taken.status_code == httpx.codes.OK
        speech_page.press("Start")
        refused = browser_page.get_by_text("429: 1 request is running and 1 waiting")
        expect(refused).to_have_count(3)
    expect(speech_page.status("Streams")).to_have_text(
        "1 of 4 streams completed; the server rejected 3 with 429. Run fewer at a time.",
        timeout=SPEECH_DEADLINE_MS,
    )


def test_a_page_of_its_own_speaks_through_the_server_that_allows_it(
    browser_page: Page, page_apart: Apart
) -> None:
    browser_page.goto(page_apart.allowed)
    enter_key(browser_page, KEY)
    speak_to_the_end(browser_page)


def test_with_a_key_voices_of_other_clients_can_be_deleted(
    browser_page: Page, locked_server: Server, page_apart: Apart
) -> None:
    speech = locked_server.speech(input=SENTENCE, response_format="wav").content
    voice = {"data": {"name": "Ada", "consent": "true"}, "files": {"audio_sample": speech}}
    voices = f"{locked_server.url}/v1/audio/voices"
    uploaded = httpx.post(voices, headers=AUTHORIZATION, timeout=60, **voice)  # type: ignore[arg-type]
    assert uploaded.status_code == httpx.codes.OK, uploaded.text
    browser_page.goto(page_apart.allowed)
    enter_key(browser_page, KEY)
    SpeechPage(browser_page).tab("Your voice")
    browser_page.get_by_role("button", name="Delete Ada").click()
    browser_page.get_by_role("button", name="Delete", exact=True).click()
    expect(browser_page.get_by_text("Ada is deleted.")).to_be_visible()


def test_a_page_that_is_not_allowed_says_how_to_allow_it(
    browser_page: Page, page_apart: Apart
) -> None:
    browser_page.goto(page_apart.stranger)
    advice = f"it must be started with --allow-origin {page_apart.stranger}"
    expect(browser_page.get_by_text(advice)).to_be_visible()
