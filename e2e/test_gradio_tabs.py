"""The Gradio app's tabs in a real browser, and its endpoints by `gradio_client`: what they show and
return is what the API returns."""

from __future__ import annotations

import base64
import io
import wave
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from gradio_client import Client, handle_file  # type: ignore[import-untyped]
from gradio_client.exceptions import AppError  # type: ignore[import-untyped]
from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect

from served import planned, served_plans
from tiny_talker.omni import PLUGIN as OMNI

from .server import READY_DEADLINE_S, Server, wait_until
from .speech_page import SPEECH_DEADLINE_MS

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

SENTENCE = "The gate is open."
QUESTION = "What is the weather like?"
BUTTONS = {
    "Speak": "Make a file",
    "Clone": "Speak like this",
    "Draw": "Draw",
    "Transcribe": "Write it down",
}
"""One of each tab's own; nothing answers here."""


@pytest.fixture(scope="module", autouse=True)
def loaded(server: Server, recording: Path) -> None:
    """A server that has just started loads what draws and what listens last."""

    def draws() -> bool:
        body = {"prompt": "red apple", "n": 1}
        url = f"{server.url}/v1/images/generations"
        return httpx.post(url, json=body, timeout=120).is_success

    def listens() -> bool:
        with recording.open("rb") as file:
            url = f"{server.url}/v1/audio/transcriptions"
            return httpx.post(url, files={"file": file}, timeout=120).is_success

    wait_until(draws, READY_DEADLINE_S, "a model draws")
    wait_until(listens, READY_DEADLINE_S, "a model listens")


@pytest.fixture(scope="module")
def client(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(
        f"{server.url}/gradio/",
        download_files=tmp_path_factory.mktemp("downloads"),
        verbose=False,
        httpx_kwargs={"timeout": SPEECH_DEADLINE_MS / 1000},
    )
    yield client
    client.close()


@pytest.fixture(scope="module")
def recording(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Somebody who speaks for some seconds."""
    path = tmp_path_factory.mktemp("recordings") / "said.wav"
    answer = server.speech(input=f"{SENTENCE} {SENTENCE}", response_format="pcm", voice="ben")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24_000)
        file.writeframes(answer.content)
    return path


@pytest.fixture
def app(browser_page: Page, server: Server) -> Page:
    browser_page.goto(f"{server.url}/gradio/")
    return browser_page


def test_menus_and_tabs_are_what_the_server_offers(app: Page, server: Server) -> None:
    expect(app.get_by_role("tab")).to_have_text(list(BUTTONS))
    models = [one["id"] for one in server.get("/v1/audio/models").json()["models"]]
    app.get_by_label("Model", exact=True).first.click()
    expect(app.get_by_role("option")).to_contain_text(models)
    app.get_by_role("option").last.click()
    listed = server.get(f"/v1/audio/voices?model={models[-1]}").json()["voices"]
    voice = app.get_by_label("Voice", exact=True).first
    expect(voice).to_have_value(f"{listed[0]['name']} ({listed[0]['gender']})")


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize(
    "viewport",
    [{"width": 1280, "height": 800}, {"width": 390, "height": 844}],
    ids=["desktop", "phone"],
)
def test_tabs_keep_their_places_forth_and_back(app: Page, viewport: ViewportSize) -> None:
    app.set_viewport_size(viewport)
    tabs = app.get_by_role("tab")
    for name in (*BUTTONS, *reversed(BUTTONS), "Transcribe", "Clone"):
        tabs.filter(has_text=name).click()
        for button in BUTTONS.values():
            shown = app.get_by_role("button", name=button, exact=True)
            expect(shown).to_have_count(1 if button == BUTTONS[name] else 0)
        expect(tabs).to_have_text(list(BUTTONS))
        expect(app.get_by_role("tab", selected=True)).to_have_text([name])


@pytest.mark.thorough
def test_a_picture_is_the_apis(app: Page, server: Server) -> None:
    app.get_by_role("tab", name="Draw").click()
    app.get_by_label("Prompt").fill("red apple")
    app.get_by_label("Seed (-1: any)").fill("7")
    app.get_by_role("button", name="Draw", exact=True).click()
    shown = app.get_by_role("tabpanel").locator("img:visible[src*='gradio_api/file=']")
    expect(shown).to_have_count(1, timeout=SPEECH_DEADLINE_MS)
    expect(app.get_by_label("Drawn with the seed")).to_have_value("7")
    file = httpx.get(str(shown.get_attribute("src")), timeout=60)
    body = {"prompt": "red apple", "seed": 7}
    answer = httpx.post(f"{server.url}/v1/images/generations", json=body, timeout=120)
    expected = base64.b64decode(answer.json()["data"][0]["b64_json"])
    np.testing.assert_array_equal(pixels(file.content), pixels(expected))


def pixels(file: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file)))


@pytest.mark.thorough
def test_a_recording_is_written_down(app: Page, server: Server, recording: Path) -> None:
    app.get_by_role("tab", name="Transcribe").click()
    with app.expect_file_chooser() as choosing:
        app.get_by_role("tabpanel").get_by_text("Click to Upload").locator("visible=true").click()
    choosing.value.set_files(recording)
    app.get_by_role("tabpanel").locator("canvas, #waveform").locator(
        "visible=true"
    ).first.wait_for()
    app.get_by_role("button", name="Write it down").click()
    with recording.open("rb") as file:
        url = f"{server.url}/v1/audio/transcriptions"
        heard = httpx.post(url, files={"file": file}, timeout=120).json()["text"].strip()
    assert "gate" in heard.lower()
    expect(app.get_by_label("Transcript", exact=True)).to_have_value(
        heard, timeout=SPEECH_DEADLINE_MS
    )


def test_a_voice_is_cloned_as_by_the_api(client: Client, server: Server, recording: Path) -> None:
    path = client.predict(handle_file(recording), "", SENTENCE, "", api_name="/clone")
    url = f"data:audio/wav;base64,{base64.b64encode(recording.read_bytes()).decode()}"
    answer = server.speech(input=SENTENCE, ref_audio=url, response_format="mp3")
    assert Path(path).read_bytes() == answer.content


def test_what_the_server_rejects_is_told(client: Client, recording: Path) -> None:
    with pytest.raises(AppError, match="served: "):
        client.predict("Hello.", "", 1.0, "nobody", api_name="/speak")
    with pytest.raises(AppError, match="size is '3x3'"):
        client.predict("red apple", "3x3", -1, "", api_name="/draw")
    with pytest.raises(AppError, match=r"speed: .*99"):
        client.predict("Hello.", "", 99, "", api_name="/speak")
    with pytest.raises(AppError, match=r"^text is required"):
        client.predict("", "", 1.0, "", api_name="/speak")
    with pytest.raises(AppError, match=r"form: .*'xyz'"):
        client.predict(handle_file(recording), "xyz", "", api_name="/transcribe")
    with pytest.raises(ValueError, match="Cannot find a function with `api_name`: /chat"):
        client.predict(QUESTION, api_name="/chat")  # nothing answers here


# The app runs in this process; Gradio counts its calls with what pandas gives up.
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting'", "ignore:The copy keyword")
def test_a_conversation(browser_page: Page, tmp_path: Path) -> None:
    """With a model that answers and none that speaks: the app has no other tab."""
    app, folder = browser_page, tmp_path / "omni"
    folder.mkdir()
    with served_plans([planned(OMNI, folder)], tmp_path / "voices", pages=True) as url:
        app.goto(f"{url}/gradio/")
        expect(app.get_by_role("tab")).to_have_text(["Chat"])
        asked: list[dict[str, object]] = []
        for question in (QUESTION, "And tomorrow?"):
            app.get_by_role("textbox").last.fill(question)
            app.keyboard.press("Enter")
            asked.append({"role": "user", "content": [{"type": "text", "text": question}]})
            body = {"messages": asked, "model": OMNI.name}
            answer = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=120)
            said = answer.json()["choices"][0]["message"]["content"]
            bots = app.locator("[data-testid=bot]")
            expect(bots).to_have_count((len(asked) + 1) // 2, timeout=SPEECH_DEADLINE_MS)
            expect(bots.last).to_have_text(said, timeout=SPEECH_DEADLINE_MS)
            asked.append({"role": "assistant", "content": said})
        expect(app.get_by_role("tab")).to_have_text(["Chat"])
        client = Client(f"{url}/gradio/", verbose=False, httpx_kwargs={"timeout": 60})
        assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/chat"]
        first = asked[1]["content"]
        assert client.predict(QUESTION, api_name="/chat")[0] == first
        client.reset_session()
        assert client.predict({"text": QUESTION, "files": []}, api_name="/chat")[0] == first
        client.close()
        app.goto("about:blank")
