"""The tab "Your voice" in a real browser, whose microphone hears speech: recording, checking and
saving a voice, and who may delete it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Browser, FilePayload, Locator, Page, Playwright, Request, expect

from .chromium import Driver, launch_chromium
from .listen_page import GONE, WATCH_MICROPHONE
from .server import Server
from .speech_page import POLL_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

RATE = 24_000
SPOKEN = "Would you believe that the old clock still works, after all of these long years?"
GOOD = "The recording is good."

RECORDED = """
(seconds) => parseFloat(document.querySelector("[data-role=record-clock]").textContent) > seconds
"""
Sound = NDArray[np.float64]


@pytest.fixture(scope="module")
def speech(server: Server) -> Sound:
    """About five seconds of speech, with the pauses of a speaker before and after."""
    answer = server.speech(input=SPOKEN, voice="ben", response_format="pcm")
    spoken = np.frombuffer(answer.content, dtype="<i2") / 32768
    pause = np.random.default_rng(1).normal(0, 1e-4, RATE // 2)
    sound = np.concatenate([pause, spoken / np.abs(spoken).max() / 2, pause])
    assert 4 * RATE < len(sound) < 14 * RATE
    return sound  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def browser(
    playwright: Playwright, speech: Sound, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    heard = tmp_path_factory.mktemp("microphone") / "speech.wav"
    soundfile.write(heard, speech, RATE)
    browser = launch_chromium(playwright, heard)
    yield browser
    browser.close()


@pytest.fixture
def beeping_page(driver: Driver) -> Iterator[Page]:
    """A page with Chromium's own fake microphone, which beeps."""
    with driver.browser().new_context() as context:
        yield context.new_page()


def wav(sound: Sound, name: str = "sound.wav") -> FilePayload:
    file = io.BytesIO()
    soundfile.write(file, np.clip(sound, -1, 1), RATE, format="WAV", subtype="PCM_16")
    return {"name": name, "mimeType": "audio/wav", "buffer": file.getvalue()}


def uploaded(server: Server) -> list[str]:
    """Their names; each is listed for every model that follows recordings."""
    voices = server.get("/v1/audio/voices").json()["voices"]
    names = {voice["id"]: voice["name"] for voice in voices if voice["kind"] == "uploaded"}
    return list(names.values())


def open_tab(page: Page, server: Server) -> SpeechPage:
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.tab("Your voice")
    return speech_page


def record(speech_page: SpeechPage, seconds: float) -> None:
    speech_page.press("Record")
    speech_page.page.wait_for_function(RECORDED, arg=seconds, polling=POLL_MS)
    speech_page.press("Stop recording")


def describe(page: Page, name: str) -> None:
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("has agreed").check()


def verdict(page: Page) -> Locator:
    """The text of the recording's check."""
    return page.locator("[data-role=verdict]")


def status(page: Page) -> Locator:
    return page.locator("[data-role=clone-status]")


def test_a_recorded_voice_is_saved_and_nothing_of_it_stays_in_the_form(
    browser_page: Page, server: Server
) -> None:
    page = browser_page
    speech_page = open_tab(page, server)
    sentence = page.locator("[data-role=read]").inner_text()
    speech_page.press("Another sentence")
    read = page.locator("[data-role=read]").inner_text()
    assert len(read.split()) > 20
    assert read != sentence
    record(speech_page, 3.5)
    expect(verdict(page)).to_have_text(GOOD)
    expect(page.get_by_label("Your recording")).to_be_visible()
    speech_page.press("I read the sentence above")
    expect(page.get_by_label("What is said in it")).to_have_value(read)
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Name the voice.")
    describe(page, "Ada")
    expect(status(page)).to_be_empty()
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Ada is saved.")
    assert uploaded(server) == ["Ada"]

    expect(page.get_by_label("Your recording")).to_be_hidden()
    assert page.locator("[data-role=reference]").get_attribute("src") is None
    expect(verdict(page)).to_be_empty()
    expect(page.locator("[data-role=record-clock]")).to_have_text("0.0 s")
    for field in ("What is said in it", "Name", "or a file"):
        expect(page.get_by_label(field, exact=field == "Name")).to_have_value("")
    expect(page.get_by_label("has agreed")).not_to_be_checked()
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Record something, or choose a file.")

    delete_with_question(speech_page, "Ada")
    assert uploaded(server) == []


def test_a_microphone_that_vanishes_is_told_and_what_it_heard_is_kept(
    browser_page: Page, server: Server
) -> None:
    page = browser_page
    page.add_init_script(WATCH_MICROPHONE)
    speech_page = open_tab(page, server)
    for seconds, told in ((0.5, GONE), (3.5, f"{GONE} {GOOD}")):
        speech_page.press("Record")
        page.wait_for_function(RECORDED, arg=seconds, polling=POLL_MS)
        page.evaluate("window.pull()")
        expect(verdict(page)).to_have_text(told)
        expect(page.get_by_label("Your recording")).to_be_visible()
        expect(page.get_by_role("button", name="Record", exact=True)).to_be_visible()


def delete_with_question(speech_page: SpeechPage, name: str) -> None:
    """Declines twice, then agrees."""
    page = speech_page.page
    button = page.get_by_role("button", name=f"Delete {name}", exact=True)
    dialog = page.get_by_role("alertdialog", name=f"Delete {name}?")
    button.click()
    expect(dialog).to_contain_text("cannot be undone")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(button).to_be_focused()
    button.click()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(status(page)).not_to_contain_text("deleted")
    button.click()
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(status(page)).to_have_text(f"{name} is deleted.")
    expect(page.get_by_role("heading", name="Saved voices")).to_be_focused()
    expect(button).to_have_count(0)


def test_what_is_no_speech_is_refused_before_it_is_sent(
    browser_page: Page, server: Server, speech: Sound
) -> None:
    page = browser_page
    sent: list[Request] = []
    uploads = f"{server.url}/v1/audio/voices"
    page.on("request", lambda request: sent.append(request) if request.url == uploads else None)
    speech_page = open_tab(page, server)
    random = np.random.default_rng(2)
    seconds = np.arange(4 * RATE) / RATE
    tone = 0.3 * np.sin(2 * np.pi * 440 * seconds)
    melody = 0.3 * np.sin(2 * np.pi * (300 + 100 * np.floor(seconds * 4) % 7) * seconds)
    chord = sum(np.sin(2 * np.pi * hertz * seconds) for hertz in (110, 220, 330)) / 4
    power = np.mean(speech**2)
    describe(page, "Nobody")
    for sound, says in (
        (speech[: 2 * RATE], "lasts 2.0 s. At least 3 s"),
        (np.tile(speech, 12)[: 61 * RATE], "lasts 61 s. At most 60 s"),
        (np.zeros(4 * RATE), "silent"),
        (speech / 60, "too quiet"),
        (speech * 6, "distorted"),
        (tone, "only a tone"),
        (tone * (seconds % 1 < 0.3), "only a tone"),
        (melody, "only a tone"),
        (np.asarray(chord), "only a tone"),
        (random.normal(0, 0.1, 4 * RATE), "steady noise"),
        (speech + random.normal(0, np.sqrt(power / 4), len(speech)), "background is too loud"),
    ):
        page.get_by_label("or a file").set_input_files(wav(sound))
        expect(verdict(page)).to_contain_text(says)
        speech_page.press("Save voice")
        expect(status(page)).to_contain_text(says)
    assert [one for one in sent if one.method == "POST"] == []
    page.get_by_label("or a file").set_input_files(wav(speech))
    expect(verdict(page)).to_have_text(GOOD)
    expect(status(page)).to_be_empty()
    assert uploaded(server) == []


def test_a_recorded_beep_is_refused(beeping_page: Page, server: Server) -> None:
    page = beeping_page
    speech_page = open_tab(page, server)
    record(speech_page, 3.1)
    expect(verdict(page)).to_have_text("There is no speech in it, only a tone or a steady noise.")
    assert verdict(page).get_attribute("data-error") == "true"
    describe(page, "Beep")
    speech_page.press("Save voice")
    expect(status(page)).to_contain_text("There is no speech in it")
    assert uploaded(server) == []


def test_a_file_needs_a_free_name_and_the_speakers_consent(
    browser_page: Page, server: Server, speech: Sound
) -> None:
    page = browser_page
    speech_page = open_tab(page, server)
    page.get_by_label("or a file").set_input_files(wav(speech))
    page.get_by_label("Name", exact=True).fill("Clara")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Without the speaker's consent the voice cannot be saved.")
    expect(page.get_by_label("has agreed")).to_be_focused()
    page.get_by_label("has agreed").check()
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("There is a voice of this name already. Choose another name.")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Clara")
    assert uploaded(server) == []


def test_only_the_browser_that_uploaded_a_voice_offers_to_delete_it(
    browser: Browser, browser_page: Page, server: Server, speech: Sound
) -> None:
    page = browser_page
    speech_page = open_tab(page, server)
    page.get_by_label("or a file").set_input_files(wav(speech))
    describe(page, "Ada")
    speech_page.press("Save voice")
    expect(status(page)).to_have_text("Ada is saved.")
    with browser.new_context() as elsewhere:
        other = elsewhere.new_page()
        open_tab(other, server)
        entry = other.get_by_role("listitem").filter(has_text="Ada")
        expect(entry).to_contain_text("saved in another browser")
        expect(entry.get_by_role("button", name="Delete Ada")).to_have_count(0)
        answer = other.evaluate(
            "fetch('/v1/audio/voices/Ada', {method: 'DELETE'}).then(answer => answer.status)"
        )
        assert answer == 403
    assert uploaded(server) == ["Ada"]
    page.reload()
    speech_page.wait_until_ready()
    speech_page.tab("Your voice")
    delete_with_question(speech_page, "Ada")
    assert uploaded(server) == []
