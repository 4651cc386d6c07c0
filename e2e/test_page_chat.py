"""The tab for chats: what goes to the model, and what the reader sees and keeps of the answer."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import FilePayload, Locator, Page, Route, expect

from .conftest import SHIPPED
from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

MODEL = {
    "id": "thinker",
    "object": "model",
    "created": 0,
    "owned_by": "cantata",
    "input_modalities": ["text", "image"],
    "output_modalities": ["text"],
    "images": None,
    "transcription": None,
}
STORAGE_IS_FULL = """
Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };
"""


def png(colour: str, side: int = 8) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (side, side), colour).save(made, "PNG")
    return made.getvalue()


def events(*deltas: dict[str, Any], end: str | None = "stop") -> str:
    """A streamed answer."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in deltas
    ]
    if end is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": end})
    lines = [f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices]
    return "".join(lines) + ("data: [DONE]\n\n" if end is not None else "")


class Thinker:
    """Answers in the place of a served model.

    Args:
        answers: streams, or errors as (status, code, message), in their order.
    """

    def __init__(self, page: Page, answers: Sequence[str | tuple[int, str, str]]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._answers = list(answers)
        page.route("**/v1/models", self._list)
        page.route("**/v1/chat/completions", self._answer)

    def _list(self, route: Route) -> None:
        listed = route.fetch().json()
        route.fulfill(json={**listed, "data": [*listed["data"], MODEL]})

    def _answer(self, route: Route) -> None:
        self.asked.append(json.loads(route.request.post_data or "{}"))
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            route.fulfill(body=answer, content_type="text/event-stream")
        else:
            status, code, message = answer
            route.fulfill(status=status, json={"error": {"code": code, "message": message}})


class ChatPage:
    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, url: str) -> None:
        SpeechPage(self.page).open(url)
        SpeechPage(self.page).tab("Chat")

    @property
    def message(self) -> Locator:
        return self.page.get_by_label("Your message")

    @property
    def entries(self) -> Locator:
        return self.page.get_by_role("log", name="Conversation").get_by_role("listitem")

    @property
    def status(self) -> Locator:
        return self.page.get_by_role("region", name="Chat").get_by_role("status")

    def send(self, text: str) -> None:
        self.message.fill(text)
        self.message.press("Enter")


def test_words_thoughts_and_pictures_stay_in_one_thread_and_are_saved(
    browser_page: Page, server: Server
) -> None:
    drawn = f"data:image/png;base64,{base64.b64encode(png('red')).decode()}"
    thinker = Thinker(
        browser_page,
        [
            events(
                {"role": "assistant", "content": ""},
                {"reasoning_content": "They want red."},
                {"content": "Here "},
                {"content": "it is."},
                {"images": [{"type": "image_url", "image_url": {"url": drawn}}]},
            ),
            events({"content": "Blue."}),
        ],
    )
    chat = ChatPage(browser_page)
    chat.open(server.url)
    chat.message.fill("Draw this")
    browser_page.get_by_role("tabpanel").get_by_label("Pictures", exact=True).set_input_files(
        FilePayload(name="a.png", mimeType="image/png", buffer=png("blue", 3_000))
    )
    expect(browser_page.get_by_alt_text("Picture 1")).to_be_visible()
    browser_page.get_by_role("button", name="Send", exact=True).click()
    answer = chat.entries.nth(1)
    expect(answer).to_contain_text("Here it is.")
    expect(answer.get_by_alt_text("The picture that was drawn")).to_be_visible()
    expect(answer.get_by_text("They want red.")).to_be_hidden()
    answer.get_by_text("Thoughts").click()
    expect(answer.get_by_text("They want red.")).to_be_visible()
    (picture, words) = thinker.asked[0]["messages"][0]["content"]
    assert words == {"type": "text", "text": "Draw this"}
    sent = picture["image_url"]["url"].partition(",")[2]
    assert Image.open(io.BytesIO(base64.b64decode(sent))).size == (1280, 1280)

    browser_page.reload()
    chat = ChatPage(browser_page)
    SpeechPage(browser_page).wait_until_ready()
    SpeechPage(browser_page).tab("Chat")
    expect(chat.entries).to_have_count(2)
    chat.send("And now?")
    expect(chat.entries.nth(3)).to_contain_text("Blue.")
    roles = [message["role"] for message in thinker.asked[1]["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert thinker.asked[1]["messages"][1]["images"][0]["image_url"]["url"] == drawn
    with browser_page.expect_download() as download:
        browser_page.get_by_role("button", name="Save as Markdown").click()
    assert download.value.suggested_filename == "Draw this.md"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert text.startswith("## You\n\n![Picture 1](data:image/jpeg;base64,")
    assert "## Answer\n\n> They want red." in text
    assert text.endswith("## You\n\nAnd now?\n\n## Answer\n\nBlue.\n")

    browser_page.get_by_role("button", name="New chat").click()
    browser_page.get_by_role("button", name="Delete", exact=True).click()
    expect(chat.entries).to_have_count(0)


def test_calls_of_tools_are_shown_and_take_their_results(
    browser_page: Page, server: Server
) -> None:
    call = {"name": "weather", "arguments": '{"city": '}
    thinker = Thinker(
        browser_page,
        [
            events(
                {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": call}]},
                {"tool_calls": [{"index": 0, "function": {"arguments": '"Ulm"}'}}]},
                end="tool_calls",
            ),
            events({"content": "Take an umbrella."}),
        ],
    )
    chat = ChatPage(browser_page)
    chat.open(server.url)
    browser_page.locator("#cantata-chat summary", has_text="Settings").click()
    browser_page.get_by_label("Instructions").fill("Be brief.")
    tools = browser_page.get_by_label("Tools, a JSON list")
    tools.fill("{")
    chat.send("Umbrella?")
    expect(chat.status).to_contain_text("not a JSON list")
    tools.fill('[{"type": "function", "function": {"name": "weather"}}]')
    chat.send("Umbrella?")
    expect(chat.entries.nth(1)).to_contain_text('weather({"city": "Ulm"})')
    expect(chat.status).to_contain_text("waits for a result")
    chat.message.fill("heavy rain")
    browser_page.get_by_role("button", name="Send the result").click()
    expect(chat.entries.nth(3)).to_contain_text("Take an umbrella.")
    first, second = thinker.asked
    assert first["tools"][0]["function"]["name"] == "weather"
    system, _, calls, result = second["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    assert calls["tool_calls"][0]["function"]["arguments"] == '{"city": "Ulm"}'
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "heavy rain"}


def test_it_answers_aloud_in_the_pages_voice_and_one_thing_sounds_at_a_time(
    browser_page: Page, server: Server
) -> None:
    sound = base64.b64encode(bytes(2 * 24_000)).decode()
    thinker = Thinker(
        browser_page,
        [events({"audio": {"id": "a", "transcript": "Good "}}, {"audio": {"data": sound}})],
    )
    chat = ChatPage(browser_page)
    chat.open(server.url)
    voice = browser_page.locator("#cantata-voice").input_value()
    browser_page.get_by_role("switch", name="Answer aloud").check()
    chat.send("Hello")
    browser_page.wait_for_function("window.cantata.chat.loud.seconds === 1")
    browser_page.wait_for_function("!window.cantata.chat.loud.sounding")
    assert thinker.asked[0]["modalities"] == ["text", "audio"]
    assert thinker.asked[0]["audio"] == {"format": "pcm16", "voice": voice}
    expect(chat.entries.nth(1)).to_contain_text("Good")


def test_what_goes_wrong_is_said_with_what_to_do(browser_page: Page, server: Server) -> None:
    browser_page.add_init_script(STORAGE_IS_FULL)
    Thinker(
        browser_page,
        [
            (429, "rate_limit_exceeded", "full"),
            (400, "context_length_exceeded", "too long"),
            events({"content": "Half"}, end=None),
            events({"content": "Whole"}),
            events({"content": "Cut"}, end="length"),
        ],
    )
    chat = ChatPage(browser_page)
    chat.open(server.url)
    chat.send(" ")
    expect(chat.status).to_have_text("Write something first.")
    again = browser_page.get_by_role("button", name="Answer again")
    chat.send("Hello")
    expect(chat.status).to_have_text("The server is full at the moment. Try again soon.")
    expect(chat.entries).to_have_count(1)
    again.click()
    expect(chat.status).to_contain_text("Save it, and start a new one")
    again.click()
    expect(chat.status).to_contain_text("broke before the end")
    expect(chat.entries.nth(1)).to_contain_text("Half")
    again.click()
    expect(chat.entries.nth(1)).to_contain_text("Whole")
    expect(chat.status).to_contain_text("storage is full or off: save the chat")
    again.click()
    expect(chat.entries).to_have_count(2)
    expect(chat.entries.nth(1)).to_contain_text("Cut")


def test_what_is_said_is_heard_by_the_served_model_and_sent(
    browser_page: Page, server: Server
) -> None:
    thinker = Thinker(browser_page, [events({"content": "Yes."})])
    done = {"type": "transcript.text.done", "text": "Is it late?", "usage": {"seconds": 1}}
    heard = f"event: transcript.text.done\ndata: {json.dumps(done)}\n\n"
    browser_page.route(
        "**/v1/audio/transcriptions",
        lambda route: route.fulfill(body=heard, content_type="text/event-stream"),
    )
    listens = {"id": "ear", "transcription": {"languages": ["en"], "max_bytes": 1}}

    def add_listener(route: Route) -> None:
        listed = route.fetch().json()
        ear = {**MODEL, **listens, "input_modalities": ["audio"]}
        route.fulfill(json={**listed, "data": [*listed["data"], MODEL, ear]})

    browser_page.route("**/v1/models", add_listener)
    chat = ChatPage(browser_page)
    chat.open(server.url)
    browser_page.get_by_role("button", name="Speak", exact=True).click()
    browser_page.get_by_role("button", name="Send what I said").click()
    expect(chat.entries.nth(1)).to_contain_text("Yes.")
    assert thinker.asked[0]["messages"] == [{"role": "user", "content": "Is it late?"}]
    assert SHIPPED not in json.dumps(thinker.asked)
