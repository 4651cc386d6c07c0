"""What a server asks for before it keeps a voice, on the tab "Your voice" and by command: the word
of a person, or the speaker's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from gradio_client import Client, handle_file  # type: ignore[import-untyped]
from gradio_client.exceptions import AppError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page, Playwright, expect

from cantata_bench.server import end

from .chromium import launch_chromium
from .conftest import GIVEN_URL, ROOT, serving
from .server import Server
from .speech_page import SPEECH_DEADLINE_MS
from .test_howtos import run
from .test_page_voice import RATE, describe, open_tab, status, wav

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

VOICE = "ben"
SAID = "Would you believe that the old clock still works, after all of these long years?"
WITHOUT_MODELS = ROOT / "backend" / "tests" / "unit" / "api" / "fake_server_process.py"

Sound = NDArray[np.float64]


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One that asks for a statement in the speaker's own voice."""
    if GIVEN_URL:
        pytest.skip("the server that is given does not ask for it")
    options = ("--voice-consent", "spoken", "--model", "whisper")
    with serving("consent", "quartet", request, tmp_path_factory.mktemp("voices"), *options) as one:
        yield one


def speak(server: Server, text: str) -> Sound:
    answer = server.speech(input=text, voice=VOICE, response_format="pcm")
    spoken = np.frombuffer(answer.content, dtype="<i2") / 32768
    pause = np.random.default_rng(1).normal(0, 1e-4, RATE // 2)
    return np.concatenate([pause, spoken / np.abs(spoken).max() / 2, pause])


@pytest.fixture(scope="module")
def browser(
    playwright: Playwright, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """Its microphone hears the speaker, who says something else than the statement."""
    heard = tmp_path_factory.mktemp("microphone") / "speech.wav"
    soundfile.write(heard, speak(server, SAID), RATE)
    browser = launch_chromium(playwright, heard)
    yield browser
    browser.close()


def consents(url: str) -> list[dict[str, Any] | None]:
    """Of the uploaded voices."""
    voices = httpx.get(f"{url}/v1/audio/voices", timeout=60).json()["voices"]
    return [voice["consent"] for voice in voices if voice["kind"] == "uploaded"]


def saved(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has_text=name)


@pytest.mark.thorough
def test_the_commands_of_the_howto(server: Server, tmp_path: Path) -> None:
    run("voices.md", ["ask"], server, tmp_path)
    statement = json.loads((tmp_path / "consent.json").read_bytes())["statement"]
    for name, text in (("ada", SAID), ("statement", statement)):
        soundfile.write(tmp_path / f"{name}.wav", speak(server, text), RATE)
    kept = json.loads(run("voices.md", ["spoken"], server, tmp_path))["consent"]
    assert (kept["by"], kept["statement"]) == ("Ada Lovelace", statement)
    httpx.delete(f"{server.url}/v1/audio/voices/Ada").raise_for_status()


def test_the_speaker_reads_the_servers_sentence(browser_page: Page, server: Server) -> None:
    page = browser_page
    speech_page = open_tab(page, server)
    asked = page.get_by_role("region", name="A voice of your own")
    statement = asked.locator("[data-role=statement]")
    verdict = asked.locator("[data-role=spoken] [data-role=verdict]")
    expect(statement).to_contain_text("I agree that this computer speaks in my voice.")
    page.get_by_label("or a file").set_input_files(wav(speak(server, SAID)))
    describe(page, "Ada")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Name the speaker.")
    page.get_by_label("The speaker's name").fill("Ada Lovelace")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text(
        "The sentence of consent: Record something, or choose a file."
    )

    # Into the microphone, and not what was asked for: another sentence is.
    first = statement.inner_text()
    speech_page.press("Record the consent")
    clock = asked.locator("[data-role=spoken] [data-role=record-clock]")
    expect(clock).to_contain_text("4.", timeout=SPEECH_DEADLINE_MS)
    speech_page.press("Stop recording")
    expect(verdict).to_have_text("The recording is good.")
    speech_page.press("Save voice")
    expect(status(page)).to_contain_text("The statement was not heard", timeout=SPEECH_DEADLINE_MS)
    expect(statement).not_to_have_text(first)
    expect(verdict).to_be_empty()
    assert consents(server.url) == []

    second = statement.inner_text()
    page.get_by_label("or a recording of it").set_input_files(wav(speak(server, second)))
    expect(verdict).to_have_text("The recording is good.")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Ada is saved.", timeout=SPEECH_DEADLINE_MS)
    (kept,) = consents(server.url)
    assert kept is not None
    assert (kept["kind"], kept["by"], kept["statement"]) == ("spoken", "Ada Lovelace", second)
    expect(saved(page, "Ada")).to_contain_text("Consent spoken by Ada Lovelace")
    expect(saved(page, "Ada")).to_contain_text(second)
    expect(statement).not_to_have_text(second)
    expect(page.get_by_label("The speaker's name")).to_have_value("")


@pytest.fixture(scope="module")
def attesting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for a person's name; without models, since none takes part."""
    voices = str(tmp_path_factory.mktemp("voices"))
    options = json.dumps({"pages": True, "consent": "attest", "voices_dir": voices})
    command = [sys.executable, str(WITHOUT_MODELS), options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdin.write(b"\n")  # it may sound
            process.stdin.flush()
            yield Server(process.stdout.readline().decode().strip())
        finally:
            end(process)


def test_a_person_answers_for_the_voice_by_name(
    browser_page: Page, attesting: Server, server: Server
) -> None:
    page = browser_page
    speech_page = open_tab(page, attesting)
    attested = page.get_by_label("and I answer for that")
    expect(attested).not_to_be_checked()
    expect(page.locator("[data-role=statement]")).to_be_hidden()
    page.get_by_label("or a file").set_input_files(wav(speak(server, SAID)))
    page.get_by_label("Name", exact=True).fill("Ada")
    attested.check()
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Name the person who answers for the consent.")
    expect(page.get_by_label("Your name")).to_be_focused()
    page.get_by_label("Your name").fill("Grace Hopper")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Ada is saved.")
    (kept,) = consents(attesting.url)
    assert kept is not None
    assert (kept["kind"], kept["by"]) == ("attest", "Grace Hopper")
    expect(saved(page, "Ada")).to_contain_text("Consent attested by Grace Hopper")


def test_gradio_takes_the_name_too(attesting: Server, tmp_path: Path) -> None:
    recording = tmp_path / "tone.wav"
    seconds = np.arange(4 * RATE) / RATE
    soundfile.write(recording, 0.3 * np.sin(2 * np.pi * 220 * seconds), RATE)
    timeout = {"timeout": SPEECH_DEADLINE_MS / 1000}
    client = Client(
        f"{attesting.url}/gradio/", download_files=tmp_path, verbose=False, httpx_kwargs=timeout
    )
    given = [handle_file(recording), "", "The gate is open.", ""]
    with pytest.raises(AppError, match="asks for a person's name in attested_by"):
        client.predict(*given, api_name="/clone")
    path = client.predict(*given, "Grace Hopper", api_name="/clone")
    assert Path(path).stat().st_size > 1000
    client.close()
