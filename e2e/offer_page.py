"""What the page shows of the served models, and the same requests without it."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from .speech_page import PICTURE_DEADLINE_MS, SpeechPage
from .test_page_layout import FOCUSED

TEXT = "Hello there."
SEED = 7
PROMPT = "a blue square"


def facts(listed: Locator) -> dict[str, str]:
    """The terms of a list and what they mean."""
    terms, means = (listed.locator(name).all_text_contents() for name in ("dt", "dd"))
    return dict(zip(terms, means, strict=True))


def speech_facts(page: Page) -> dict[str, str]:
    return facts(page.get_by_role("region", name="What this model does"))


def tabs(page: Page) -> list[str]:
    return page.get_by_role("tab").all_inner_texts()


def note_configs(page: Page) -> list[dict[str, Any]]:
    """The settings of each turn that is sent from now on."""
    configs: list[dict[str, Any]] = []

    def note(frame: str | bytes) -> None:
        message = json.loads(frame)
        if message["type"] == "session.config":
            configs.append(message)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    return configs


def sent(url: str, **fields: object) -> NDArray[np.int16]:
    """[2 N]: what the server sends for such a request, interleaved."""
    body = {"input": TEXT, "response_format": "pcm", **fields}
    answer = httpx.post(f"{url}/v1/audio/speech", json=body, timeout=60).raise_for_status()
    assert answer.headers["x-channels"] == "2"
    return np.frombuffer(answer.content, dtype="<i2")


def speak(speech_page: SpeechPage) -> NDArray[np.int16]:
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    return speech_page.played()


def decode_pixels(file: bytes) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))


def drawn(answer: httpx.Response) -> NDArray[np.uint8]:
    (picture,) = answer.raise_for_status().json()["data"]
    return decode_pixels(base64.b64decode(picture["b64_json"]))


def fill_drawing(speech_page: SpeechPage) -> None:
    page = speech_page.page
    speech_page.tab("Draw")
    page.get_by_label("Prompt").fill(PROMPT)
    page.get_by_role("spinbutton", name="First seed").fill(str(SEED))
    page.locator("summary", has_text="Options of this model").click()


def draw(page: Page) -> NDArray[np.uint8]:
    """The file of one more picture."""
    cards = page.get_by_role("region", name="Pictures").get_by_role("listitem")
    before = cards.count()
    page.get_by_role("button", name="Draw", exact=True).click()
    expect(cards).to_have_count(before + 1)
    status = page.get_by_role("region", name="Pictures").get_by_role("status")
    expect(status).to_have_text("Done.", timeout=PICTURE_DEADLINE_MS)
    with page.expect_download() as download:
        cards.first.get_by_role("button", name="Download").click()
    return decode_pixels(Path(download.value.path()).read_bytes())


def keyboard_order(page: Page, start: str, steps: int) -> list[str]:
    """The labels of what the keyboard reaches after a control."""
    page.get_by_label(start).focus()
    reached = []
    for _ in range(steps):
        page.keyboard.press("Tab")
        reached.append(str(page.evaluate(FOCUSED)))
    return reached
