"""The tab "Listen" in a real browser: a recording in, its words out, each of them to be played."""

from __future__ import annotations

import io
import re
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from playwright.sync_api import Page, Playwright, Request, Route, ViewportSize, expect

from .chromium import launch_chromium
from .listen_page import GONE, WATCH_MICROPHONE, ListenPage
from .server import Server, wait_until
from .speech_page import SpeechPage
from .test_page_dark import MIN_CONTRAST, TOO_FAINT
from .test_page_layout import FINGER_PX, PHONE, SMALL_TARGETS

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SENTENCES = (
    "We walk along the river in the morning.",
    "The old clock strikes seven, and the market opens.",
    "Then everybody goes home before the rain.",
)
PAUSE_S = 1.2
"""Between sentences: the server sends them one by one."""
LIKE = 0.8
"""Least likeness of what is heard to what was said; the model is small."""
EDGE_S = 0.05
FIRST = "first.wav"
"""Beside the recording: its first sentence."""

# The cues that the browser's own parser finds in a WebVTT file.
CUES = """
async (text) => {
  const track = document.createElement("track");
  const video = document.createElement("video");
  video.append(track);
  track.track.mode = "hidden";
  const loaded = new Promise((resolve) => track.addEventListener("load", resolve));
  track.src = URL.createObjectURL(new Blob([text], { type: "text/vtt" }));
  await loaded;
  return [...track.track.cues].map(({ startTime, endTime, text }) => [startTime, endTime, text]);
}
"""
# Where everything but the words is.
PLACES = """
() => [...document.querySelectorAll(
    "#cantata-listen :is(section, button, input, progress, audio, .status, .heard, .clock, h3)")]
  .map((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [one.dataset.role ?? one.className, left, top, width, height];
  })
"""
SRT_CUE = re.compile(r"(\d+)\n(\S+) --> (\S+)\n(.+)\n?")
Cue = tuple[float, float, str]


@pytest.fixture(scope="module")
def recording(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sentences, spoken by the server, with pauses between them."""
    parts: list[NDArray[np.int16]] = []
    for sentence in SENTENCES:
        answer = server.speech(input=sentence, voice="clara", response_format="wav")
        samples, rate = soundfile.read(io.BytesIO(answer.content), dtype="int16")
        parts += [samples, np.zeros(int(PAUSE_S * rate), np.int16)]
    file = tmp_path_factory.mktemp("recordings") / "three sentences.wav"
    soundfile.write(file, np.concatenate(parts), rate)
    soundfile.write(file.with_name(FIRST), np.concatenate(parts[:2]), rate)
    return file


@pytest.fixture(scope="module")
def long_recording(recording: Path) -> Path:
    """Long enough to be interrupted."""
    samples, rate = soundfile.read(recording, dtype="int16")
    file = recording.with_name("long.wav")
    soundfile.write(file, np.tile(samples, 12), rate)
    return file


@pytest.fixture
def listen_page(browser_page: Page, server: Server) -> ListenPage:
    """The tab, open and ready to listen."""
    listen_page = ListenPage(browser_page)
    listen_page.open(server.url)
    return listen_page


def plain_words(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def assert_is_like(heard: str, said: str) -> None:
    likeness = SequenceMatcher(None, plain_words(heard), plain_words(said)).ratio()
    assert likeness >= LIKE, heard


def listens_to_nobody(server: Server) -> bool:
    return server.gauge("cantata_transcriptions_running") == 0 and server.is_idle()


def note_posts(page: Page) -> list[Request]:
    posts: list[Request] = []
    page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    return posts


def read_srt(text: str) -> list[Cue]:
    """The cues; checks their numbers, and that nothing is left over."""
    cues = SRT_CUE.findall(text)
    assert [int(number) for number, *_ in cues] == list(range(1, 1 + len(cues)))
    assert SRT_CUE.sub("", text).strip() == ""
    return [(read_time(start), read_time(end), said) for _, start, end, said in cues]


def read_time(text: str) -> float:
    hours, minutes, seconds = text.replace(",", ".").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def assert_same_cues(found: list[Cue], expected: list[Cue]) -> None:
    assert [said for *_, said in found] == [said for *_, said in expected]
    times, meant = (np.array([cue[:2] for cue in cues]) for cues in (found, expected))
    np.testing.assert_allclose(times, meant, atol=0.011)


def test_words_appear_as_they_are_heard(listen_page: ListenPage, recording: Path) -> None:
    listen_page.note()
    listen_page.hear(recording)
    states = [text for text in listen_page.noted("texts") if text]
    assert len(set(states)) >= len(SENTENCES) - 1, "they came one by one"
    assert all(later.startswith(earlier) for earlier, later in pairwise(states))
    assert_is_like(states[-1], " ".join(SENTENCES))
    expect(listen_page.text).to_have_text(states[-1])
    words = listen_page.words()
    expect(listen_page.status).to_contain_text(f"Done: {len(words)} words in ")
    progress = listen_page.page.get_by_role("progressbar", name="Heard so far")
    assert progress.evaluate("one => one.value === one.max")


@pytest.mark.thorough
def test_a_click_on_a_word_plays_from_there_and_marks_what_is_heard(
    listen_page: ListenPage, recording: Path
) -> None:
    listen_page.hear(recording)
    listen_page.note()
    words = listen_page.words()
    place = next(i for i, word in enumerate(words) if "clock" in word["text"])
    listen_page.word(place).click()
    listen_page.page.wait_for_function("document.querySelector('[data-role=listen-audio]').ended")
    (sought,) = listen_page.noted("sought")
    assert sought == pytest.approx(words[place]["start"], abs=EDGE_S)
    marked = listen_page.noted("marked")
    rest = [word["text"] for word in words[place:]]
    assert marked[0] == rest[0]
    assert marked[-1] == rest[-1]
    assert SequenceMatcher(None, marked, rest).ratio() > 0.9
    assert set(marked) <= set(rest), "nothing before it was marked"


@pytest.mark.thorough
def test_the_keyboard_goes_from_word_to_word(listen_page: ListenPage, recording: Path) -> None:
    listen_page.hear(recording)
    listen_page.note()
    page, words = listen_page.page, listen_page.words()
    assert listen_page.transcript.get_by_role("button").count() == 1
    expect(listen_page.transcript).to_have_accessible_description("Choose a word to play from it.")
    listen_page.audio.focus()
    for _ in range(10):  # the player has controls of its own
        page.keyboard.press("Tab")
        if listen_page.word(0).evaluate("one => one === document.activeElement"):
            break
    expect(listen_page.word(0)).to_be_focused()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(listen_page.word(2)).to_be_focused()
    page.keyboard.press("Enter")
    expect(listen_page.word(2)).to_be_focused()
    expect(listen_page.transcript.locator("[aria-current]")).not_to_have_count(0)
    page.keyboard.press("Escape")
    assert listen_page.audio.evaluate("one => one.paused")
    assert listen_page.noted("sought")[0] == pytest.approx(words[2]["start"], abs=EDGE_S)
    page.keyboard.press("End")
    expect(listen_page.word(len(words) - 1)).to_be_focused()


@pytest.mark.thorough
def test_what_is_saved_is_what_the_server_would_write(
    listen_page: ListenPage, recording: Path, server: Server
) -> None:
    posts = note_posts(listen_page.page)
    listen_page.hear(recording)

    def asked(form: str) -> str:
        answer = httpx.post(
            f"{server.url}/v1/audio/transcriptions",
            files={"file": recording.read_bytes()},
            data={"response_format": form},
            timeout=120,
        )
        return answer.raise_for_status().text

    name, srt = listen_page.save("SRT")
    assert name == "three sentences.srt"
    expected = read_srt(asked("srt"))
    assert_same_cues(read_srt(srt), expected)
    name, vtt = listen_page.save("VTT")
    assert name == "three sentences.vtt"
    assert_same_cues([tuple(cue) for cue in listen_page.page.evaluate(CUES, vtt)], expected)
    assert listen_page.save("TXT") == ("three sentences.txt", asked("text"))
    assert len(posts) == 1, "nothing was heard twice"

    listen_page.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    listen_page.press("Copy the text")
    expect(listen_page.status).to_have_text("Copied.")
    copied = listen_page.page.evaluate("navigator.clipboard.readText()")
    assert copied == listen_page.text.inner_text()


def test_what_cannot_be_heard_is_told(
    listen_page: ListenPage, recording: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("No sound.", encoding="utf-8")
    listen_page.file.set_input_files(notes)
    expect(listen_page.status).to_contain_text("“notes.txt” is not a readable sound file; valid:")
    assert listen_page.status.get_attribute("data-error") == "true"
    expect(listen_page.page.get_by_role("button", name="Save as SRT")).to_be_disabled()

    listen_page.drop_folder()
    expect(listen_page.status).to_contain_text("This is a folder. Drop one file of it: WAV")

    silence = tmp_path / "silence.wav"
    soundfile.write(silence, np.zeros(16_000, np.int16), 16_000)
    listen_page.hear(silence)
    expect(listen_page.status).to_have_text("Nobody can be heard speaking in it.")
    listen_page.hear(recording)
    assert listen_page.status.get_attribute("data-error") == "false"


def test_cancelling_ends_the_work_and_keeps_what_was_heard(
    listen_page: ListenPage, long_recording: Path, server: Server
) -> None:
    listen_page.press_once_heard("Cancel")
    listen_page.file.set_input_files(long_recording)
    expect(listen_page.status).to_have_text("Cancelled. What was heard by then is below.")
    wait_until(lambda: listens_to_nobody(server), 30, "the server listens no more")
    heard = len(plain_words(listen_page.text.inner_text()))
    assert 0 < heard < 6 * len(plain_words(" ".join(SENTENCES)))
    listen_page.note()
    listen_page.word(0).click()
    expect(listen_page.text.locator("[aria-current]")).to_have_count(1)
    _, srt = listen_page.save("SRT")
    assert read_srt(srt)

    listen_page.press("Listen again")
    expect(listen_page.page.get_by_role("button", name="Cancel")).to_be_enabled()
    listen_page.page.keyboard.press("Escape")
    expect(listen_page.status).to_contain_text("Cancelled.")
    wait_until(lambda: listens_to_nobody(server), 30, "the server listens no more")


def test_a_dropped_file_is_heard(listen_page: ListenPage, recording: Path) -> None:
    listen_page.drop(recording)
    listen_page.wait_until_done()
    expect(listen_page.page.get_by_text("three sentences.wav")).to_be_visible()
    assert_is_like(listen_page.text.inner_text(), " ".join(SENTENCES))


def test_what_the_microphone_hears_is_written_down(
    playwright: Playwright, recording: Path, server: Server
) -> None:
    first = recording.with_name(FIRST)
    browser = launch_chromium(playwright, first, once=True)
    listen_page = ListenPage(browser.new_page())
    listen_page.open(server.url)
    listen_page.press("Record")
    expect(listen_page.status).to_contain_text("Recording.")
    seconds = soundfile.info(first).duration
    clock = f"0:{int(seconds) + 1:02}"
    expect(listen_page.page.locator("[data-role=listen-clock]")).to_have_text(clock)
    listen_page.press("Stop recording")
    listen_page.wait_until_done()
    assert_is_like(listen_page.text.inner_text(), SENTENCES[0])
    listen_page.note()
    last = len(listen_page.words()) - 1
    listen_page.word(last).click()
    expect(listen_page.word(last)).to_have_attribute("aria-current", "true")
    (sought,) = listen_page.noted("sought")
    assert sought == pytest.approx(listen_page.words()[last]["start"], abs=EDGE_S)
    browser.close()


def test_a_microphone_that_vanishes_is_told_and_what_it_heard_is_written_down(
    playwright: Playwright, recording: Path, server: Server
) -> None:
    first = recording.with_name(FIRST)
    browser = launch_chromium(playwright, first, once=True)
    page = browser.new_page()
    page.add_init_script(WATCH_MICROPHONE)
    listen_page = ListenPage(page)
    listen_page.open(server.url)
    listen_page.press("Record")
    clock = f"0:{int(soundfile.info(first).duration) + 1:02}"
    expect(page.locator("[data-role=listen-clock]")).to_have_text(clock)
    page.evaluate("window.pull()")
    expect(listen_page.status).to_contain_text(f"{GONE} Done: ")
    assert listen_page.status.get_attribute("data-error") == "true"
    assert_is_like(listen_page.text.inner_text(), SENTENCES[0])
    listen_page.press("Listen again")
    listen_page.wait_until_done()
    expect(listen_page.status).not_to_contain_text(GONE)
    browser.close()


@pytest.mark.thorough
def test_speech_and_a_recording_take_turns(listen_page: ListenPage, recording: Path) -> None:
    speech_page = SpeechPage(listen_page.page)
    listen_page.hear(recording)
    listen_page.word(0).click()
    speech_page.tab("Speak")
    with speech_page.turn():
        speech_page.write("One.")
        speech_page.press("Speak")
        assert listen_page.audio.evaluate("one => one.paused")


def test_without_a_model_that_listens_it_says_how_to_get_one(
    browser_page: Page, server: Server, recording: Path
) -> None:
    def without(route: Route) -> None:
        listed = route.fetch().json()
        models = [one for one in listed["data"] if one["input_modalities"] != ["audio"]]
        route.fulfill(json={**listed, "data": models})

    browser_page.route("**/v1/models", without)
    posts = note_posts(browser_page)
    listen_page = ListenPage(browser_page)
    listen_page.open(server.url)
    expect(browser_page.get_by_text("No model of this server listens.")).to_be_visible()
    expect(browser_page.get_by_text("cantata serve --model whisper")).to_be_visible()
    expect(listen_page.file).to_be_hidden()
    listen_page.drop(recording)
    assert posts == []


def test_what_the_model_takes_is_what_it_says(
    browser_page: Page, server: Server, recording: Path, tmp_path: Path
) -> None:
    """Its languages, and the size of its files."""
    changed = {"languages": ["en", "pt", "zh"], "max_bytes": 3 << 20}

    def change(route: Route) -> None:
        listed = route.fetch().json()
        for model in listed["data"]:
            if model["transcription"] is not None:
                model["transcription"] |= changed
        route.fulfill(json=listed)

    browser_page.route("**/v1/models", change)
    posts = note_posts(browser_page)
    listen_page = ListenPage(browser_page)
    listen_page.open(server.url)
    large = tmp_path / "large.wav"
    with large.open("wb") as file:
        file.truncate((3 << 20) + 1)
    listen_page.file.set_input_files(large)
    expect(listen_page.status).to_have_text("“large.wav” is too large: at most 3 MiB.")
    assert posts == []

    spoken = browser_page.get_by_label("Spoken in")
    offered = ["any language", "Chinese", "English", "Portuguese"]
    expect(spoken.get_by_role("option")).to_have_text(offered)
    first = recording.with_name(FIRST)
    spoken.select_option("Portuguese")
    listen_page.file.set_input_files(first)
    expect(listen_page.status).to_have_text("Language 'pt': valid: en.")
    spoken.select_option("English")
    listen_page.press("Listen again")
    expect(listen_page.status).to_contain_text("Done:")
    assert_is_like(listen_page.text.inner_text(), SENTENCES[0])


@pytest.mark.thorough
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_moves_and_all_of_it_can_be_read_and_hit_on_a_phone(
    browser_page: Page, server: Server, recording: Path, scheme: str
) -> None:
    browser_page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    browser_page.set_viewport_size(PHONE)
    listen_page = ListenPage(browser_page)
    listen_page.open(server.url)
    places: list[Any] = browser_page.evaluate(PLACES)
    listen_page.hear(recording)
    listen_page.word(3).click()
    expect(listen_page.text.locator("[aria-current]")).to_have_count(1)
    assert browser_page.evaluate(PLACES) == places
    assert browser_page.evaluate(TOO_FAINT, MIN_CONTRAST) == []
    assert browser_page.evaluate(SMALL_TARGETS, FINGER_PX) == []
    narrow: ViewportSize = {"width": 360, "height": 740}
    browser_page.set_viewport_size(narrow)
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= narrow["width"]
