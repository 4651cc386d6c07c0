"""The tab "Draw" in a real browser, with random weights in the published format."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint

from .conftest import serving
from .server import Server, wait_until
from .speech_page import PICTURE_DEADLINE_MS, SpeechPage
from .test_page_dark import MIN_CONTRAST, TOO_FAINT
from .test_page_layout import FINGER_PX, PHONE, SMALL_TARGETS
from .test_page_tabs import UNNAMED_CONTROLS

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

PROMPT = "a lighthouse that nobody else shall hear of"
SIDE = 128
"""Pixels; small, so that it is drawn soon."""
STEPS = 8
MANY_STEPS = 200
"""More than are drawn while a test looks on."""
FEW_STEPS = 2
FREE_S = 60.0
ADMITTED_S = 10.0

# Every file that is shown, in its order; and what the pictures and their progress say.
NOTE = """
window.files = [];
window.alts = [];
window.values = [];
const make = URL.createObjectURL;
URL.createObjectURL = (file) => {
  window.files.push(file);
  return make(file);
};
new MutationObserver((changes) => {
  for (const { target, attributeName: name } of changes) {
    if (name === "alt") window.alts.push(target.alt);
    else if (target.matches("progress")) window.values.push(target.value);
  }
}).observe(document, { subtree: true, attributeFilter: ["alt", "value"] });
"""
FILES = """
() => Promise.all(window.files.map(async (file) => {
  let text = "";
  for (const byte of new Uint8Array(await file.arrayBuffer())) text += String.fromCharCode(byte);
  return btoa(text);
}))
"""
DROPPED = """
(base64) => {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const dropped = new DataTransfer();
  dropped.items.add(new File([bytes], "own.png", { type: "image/png" }));
  return dropped;
}
"""
STORED = """
async () => {
  const stored = [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie];
  const all = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = reject;
  });
  for (const { name } of await indexedDB.databases()) {
    const database = await all(indexedDB.open(name));
    for (const store of database.objectStoreNames) {
      const rows = await all(database.transaction(store).objectStore(store).getAll());
      stored.push(JSON.stringify(rows));
    }
    database.close();
  }
  return stored.join();
}
"""


def checkpoint(folder: Path, variant: str) -> str:
    return str(write_checkpoint(folder, VARIANTS[variant], seed=1))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return checkpoint(tmp_path_factory.mktemp("image"), "image")


@pytest.fixture(scope="module")
def editor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server whose model edits pictures."""
    folder = checkpoint(tmp_path_factory.mktemp("edit"), "edit")
    voices = tmp_path_factory.mktemp("voices")
    with serving("editor", folder, request, voices) as server:
        yield server


class DrawPage:
    def __init__(self, page: Page, server: Server) -> None:
        self.page = page
        page.add_init_script(NOTE)
        self.speech = SpeechPage(page)
        self.speech.open(server.url)
        self.status = self.speech.status("Pictures")
        self.cards = page.get_by_role("region", name="Pictures").get_by_role("listitem")
        self.draw_button = page.get_by_role("button", name="Draw", exact=True)

    def fill(self, *, seed: int, steps: int = STEPS, side: int = SIDE, count: int = 1) -> None:
        self.page.get_by_label("Prompt").fill(PROMPT)
        self.page.get_by_label("Size").select_option("Other…")
        self.number("Width").fill(str(side))
        self.number("Height").fill(str(side))
        self.number("First seed").fill(str(seed))
        self.number("Steps").fill(str(steps))
        self.number("Pictures").fill(str(count))

    def number(self, name: str) -> Locator:
        return self.page.get_by_role("spinbutton", name=name)

    def draw(self, **fields: int) -> None:
        """Draw one picture, to its end."""
        self.fill(**fields)
        self.draw_button.click()
        self.wait_until_done()

    def wait_until_done(self) -> None:
        expect(self.status).to_have_text("Done.", timeout=PICTURE_DEADLINE_MS)

    def press(self, card: Locator, name: str) -> None:
        card.get_by_role("button", name=f"{name}: {PROMPT}").click()

    def shown(self) -> list[bytes]:
        """All files that were shown, in their order."""
        return [base64.b64decode(one) for one in self.page.evaluate(FILES)]

    def saved(self, card: Locator) -> bytes:
        """The file that the card's download saves."""
        with self.page.expect_download() as download:
            self.press(card, "Download")
        words = str(self.page.evaluate("window.cantata.drawings[0].request.prompt")).split()
        assert download.value.suggested_filename.startswith(words[0])
        assert download.value.suggested_filename.endswith(".png")
        return Path(download.value.path()).read_bytes()


@pytest.fixture
def drawing(browser_page: Page, server: Server) -> DrawPage:
    return DrawPage(browser_page, server)


def asked(seed: int, steps: int = STEPS) -> dict[str, Any]:
    """The API's fields of what `DrawPage.fill` asks for."""
    return {
        "prompt": PROMPT,
        "size": f"{SIDE}x{SIDE}",
        "seed": seed,
        "num_inference_steps": steps,
    }


def decode_file(answer: httpx.Response) -> bytes:
    """The only picture of a whole answer."""
    (picture,) = answer.raise_for_status().json()["data"]
    return base64.b64decode(picture["b64_json"])


def generated(server: Server, seed: int) -> bytes:
    url = f"{server.url}/v1/images/generations"
    return decode_file(httpx.post(url, json=asked(seed), timeout=PICTURE_DEADLINE_MS / 1000))


def previews(server: Server, seed: int) -> list[bytes]:
    """The previews that the API sends, in order."""
    body = {**asked(seed), "stream": True, "partial_images": 3}
    answer = httpx.post(
        f"{server.url}/v1/images/generations", json=body, timeout=PICTURE_DEADLINE_MS / 1000
    )
    data = [json.loads(line[6:]) for line in answer.text.splitlines() if line[:6] == "data: "]
    partial = [one for one in data if one["type"].endswith(".partial_image")]
    return [base64.b64decode(one["b64_json"]) for one in partial]


def digests(files: list[bytes]) -> list[str]:
    return [hashlib.sha256(file).hexdigest() for file in files]


def test_a_picture_appears_by_previews_and_is_the_apis_own(
    drawing: DrawPage, server: Server
) -> None:
    tabs = drawing.page.get_by_role("tab").all_inner_texts()
    assert tabs == ["Draw", "Listen", "Lab"], "no model speaks"
    drawing.draw(seed=7)
    *before, last = digests(drawing.shown())
    assert last == digests([generated(server, 7)])[0]
    # A preview that is late gives way to a later one, here as there.
    known = digests(previews(server, 7))
    places = [known.index(one) for one in before if one in known]
    assert places
    assert places == sorted(places)
    assert last not in before
    alts = list(dict.fromkeys(drawing.page.evaluate("window.alts")))
    seen = [int(alt.removeprefix("Preview ").split(":")[0]) for alt in alts[:-1]]
    assert seen == sorted(seen)
    assert alts[-1] == PROMPT
    values = drawing.page.evaluate("window.values")
    assert values == sorted(values)
    assert values[-1] == STEPS
    card = drawing.cards.nth(0)
    expect(card).to_contain_text(f"Seed 7 · {SIDE} \N{MULTIPLICATION SIGN} {SIDE}")
    expect(card).to_contain_text(f"{STEPS} steps")

    assert digests([drawing.saved(card)]) == [last]
    drawing.page.get_by_label("Prompt").fill("something else")
    drawing.number("First seed").fill("8")
    drawing.press(card, "Use again")
    expect(drawing.page.get_by_label("Prompt")).to_have_value(PROMPT)
    drawing.page.keyboard.press("Control+Enter")
    expect(drawing.cards).to_have_count(2)
    drawing.wait_until_done()
    assert digests([drawing.saved(drawing.cards.nth(0))]) == [last], "the same seed again"


def draw_two(drawing: DrawPage, server: Server, running: str) -> None:
    """Two that last: as large as the server, by its forecast, admits both on this machine."""
    for side in (512, 256, 128, 64):
        drawing.fill(seed=1, steps=MANY_STEPS, side=side, count=2)
        drawing.draw_button.click()
        try:
            wait_until(lambda: server.gauge(running) == 2, ADMITTED_S, "two are drawn")
        except AssertionError:
            drawing.page.keyboard.press("Escape")
            wait_until(lambda: server.gauge(running) == 0, FREE_S, "none is drawn")
        else:
            return
    pytest.fail("the server never drew two pictures at once")


def test_each_of_several_can_be_cancelled_and_frees_its_slot(
    drawing: DrawPage, server: Server
) -> None:
    running = "cantata_pictures_drawing"
    draw_two(drawing, server, running)
    held = server.gauge("cantata_stage_held")
    first, second = drawing.cards.nth(0), drawing.cards.nth(1)
    expect(first).to_contain_text("Step ")
    drawing.press(first, "Cancel")
    expect(first).to_contain_text("Cancelled.")
    expect(first.get_by_role("button", name="Remove")).to_be_focused()
    wait_until(lambda: server.gauge(running) == 1, FREE_S, "one of them is drawn")
    wait_until(lambda: server.gauge("cantata_stage_held") < held, FREE_S, "its slots are free")
    expect(second.get_by_role("progressbar")).to_be_visible()
    expect(drawing.status).to_have_text("Drawing 1 picture.")
    drawing.page.keyboard.press("Escape")
    expect(second).to_contain_text("Cancelled.")
    wait_until(lambda: server.gauge(running) == 0, FREE_S, "none is drawn")
    wait_until(lambda: server.gauge("cantata_stage_held") == 0, FREE_S, "everything is free")

    drawing.page.get_by_role("button", name="Clear the pictures").click()
    drawing.page.get_by_role("button", name="Clear", exact=True).click()
    expect(drawing.cards).to_have_count(0)


def test_what_the_server_refuses_is_told_at_its_field(drawing: DrawPage) -> None:
    page = drawing.page

    def exaggerate(route: Route) -> None:
        route.continue_(post_data={**(route.request.post_data_json or {}), "true_cfg_scale": 99})

    drawing.fill(seed=1, count=2)
    page.route("**/v1/images/generations", exaggerate)
    drawing.draw_button.click()
    expect(drawing.status).to_contain_text("True_cfg_scale is 99; valid: 1")
    expect(drawing.status).to_have_attribute("data-error", "true")
    expect(drawing.number("Guidance")).to_be_focused()
    expect(drawing.cards).to_have_count(0)
    page.unroute("**/v1/images/generations")

    drawing.number("Width").fill("100")
    drawing.draw_button.click()
    expect(drawing.status).to_contain_text("multiples of 16")
    drawing.number("Width").fill(str(SIDE))
    page.get_by_label("Prompt").fill(" ")
    drawing.draw_button.click()
    expect(drawing.status).to_have_text("Write what to draw.")
    expect(page.get_by_label("Prompt")).to_be_focused()


def test_a_full_server_is_told_and_tried_again(drawing: DrawPage) -> None:
    error = {"message": "every slot is taken", "code": "rate_limit_exceeded"}
    answer = {"status": 429, "headers": {"retry-after": "3"}, "json": {"error": error}}
    drawing.page.route("**/v1/images/generations", lambda route: route.fulfill(**answer), times=1)
    drawing.fill(seed=2)
    drawing.draw_button.click()
    full = "The server is full at the moment. Try again in 3 s."
    expect(drawing.status).to_have_text(full)
    expect(drawing.cards.nth(0)).to_contain_text(full)
    drawing.press(drawing.cards.nth(0), "Try again")
    drawing.wait_until_done()
    expect(drawing.cards).to_have_count(1)


def test_while_the_model_loads_the_tab_says_so(drawing: DrawPage) -> None:
    """What it is told by a server of several models, before the one that draws has started."""
    page, looks = drawing.page, list[str]()
    page.on("request", lambda request: looks.append(request.url))
    error = {"message": "model 'painter' is not ready", "code": "stage_died"}
    page.route(
        "**/v1/images/generations",
        lambda route: route.fulfill(status=503, json={"error": error}),
        times=1,
    )
    page.route("**/health", lambda route: route.fulfill(json={"stages": []}))
    drawing.fill(seed=2)
    drawing.draw_button.click()
    expect(drawing.cards.nth(0)).to_contain_text("Model 'painter' is not ready.")
    expect(drawing.status).to_contain_text("is being loaded")
    expect(drawing.draw_button).to_be_disabled()
    page.unroute("**/health")
    expect(drawing.draw_button).to_be_enabled()
    asked = [url for url in looks if url.endswith(("/health", "/ready"))]
    assert len([url for url in asked if url.endswith("/health")]) <= len(asked) / 2 + 2, asked
    drawing.press(drawing.cards.nth(0), "Try again")
    drawing.wait_until_done()


def test_a_reload_keeps_nothing(drawing: DrawPage) -> None:
    drawing.draw(seed=3)
    drawing.page.reload()
    drawing.speech.wait_until_ready()
    expect(drawing.cards).to_have_count(0)
    expect(drawing.page.get_by_label("Prompt")).to_have_value("")
    assert "lighthouse" not in drawing.page.evaluate(STORED)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_and_reached(drawing: DrawPage, scheme: str) -> None:
    page = drawing.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    drawing.draw(seed=4)
    page.locator("summary", has_text="Guidance").click()
    assert page.evaluate(TOO_FAINT, MIN_CONTRAST) == []
    assert page.evaluate(UNNAMED_CONTROLS) == []
    page.set_viewport_size(PHONE)
    assert page.evaluate(SMALL_TARGETS, FINGER_PX) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.thorough
def test_an_uploaded_picture_is_edited_and_so_is_its_edit(
    browser_page: Page, editor: Server
) -> None:
    drawing = DrawPage(browser_page, editor)
    page = drawing.page
    drawing.fill(seed=5, steps=FEW_STEPS)
    drawing.draw_button.click()
    expect(drawing.status).to_have_text("Choose a picture to edit.")
    field = page.locator("#cantata-pictures")
    field.set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"})
    expect(drawing.status).to_have_text("“a.png” is not a picture that this browser can read.")
    written = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), (200, 30, 90)).save(written, "PNG")
    encoded = base64.b64encode(written.getvalue()).decode()
    dropped = {"dataTransfer": page.evaluate_handle(DROPPED, encoded)}
    page.dispatch_event("[data-role=drop]", "drop", dropped)
    chosen = page.get_by_role("list", name="Pictures to edit")
    expect(chosen.get_by_role("img", name="own.png")).to_be_visible()
    drawing.draw_button.click()
    drawing.wait_until_done()
    edited = decode_file(
        httpx.post(
            f"{editor.url}/v1/images/edits",
            data=asked(5, FEW_STEPS),
            files={"image": ("own.png", written.getvalue(), "image/png")},
            timeout=PICTURE_DEADLINE_MS / 1000,
        )
    )
    card = drawing.cards.nth(0)
    assert digests([drawing.saved(card)]) == digests([edited])

    drawing.press(card, "Edit this")
    expect(chosen.get_by_role("img")).to_have_count(1)
    expect(chosen.get_by_role("img", name=PROMPT)).to_be_visible()
    drawing.draw_button.click()
    expect(drawing.cards).to_have_count(2)
    drawing.wait_until_done()
    assert digests([drawing.saved(drawing.cards.nth(0))]) != digests([edited])
