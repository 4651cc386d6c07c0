"""Where things are on the page: in sight, large enough, in reach of a finger and the keyboard."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, Route, ViewportSize, WebSocketRoute, expect

from .conftest import SHIPPED
from .server import Server
from .speech_page import SPEECH_DEADLINE_MS, SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TABS = ("Speak", "Read", "Talk", "Listen", "Voices", "Your voice", "Lab")
CROWDED_TABS = """
() => [...document.querySelectorAll(".tabs button:not([hidden])")].filter((tab, i, tabs) => {
  const label = document.createRange();
  label.selectNodeContents(tab);
  const [words, box] = [label.getBoundingClientRect(), tab.getBoundingClientRect()];
  const next = tabs[i + 1]?.getBoundingClientRect();
  const apart = next === undefined || box.right <= next.left + 1 || box.bottom <= next.top;
  return label.getClientRects().length > 1 || words.width + 12 > box.width || !apart;
}).map((tab) => tab.textContent)
"""
# Labels that come closer than that to the edges of what they stand on.
CROWDED_LABELS = """
(least) => [...document.querySelectorAll(".cantata :is(button, summary)")].filter((one) => {
  if (!one.checkVisibility()) return false;
  const box = one.getBoundingClientRect();
  const label = document.createRange();
  label.selectNodeContents(one);
  return [...label.getClientRects()].some(({ left, right, width }) =>
    width > 0 && (left < box.left + least || right > box.right - least));
}).map((one) => one.textContent.trim())
"""
# What menus would show cut off if it was chosen.
CUT_MENUS = """
() => [...document.querySelectorAll(".cantata select")].flatMap((menu) => {
  if (!menu.checkVisibility()) return [];
  const { font, paddingLeft, paddingRight } = getComputedStyle(menu);
  const brush = document.createElement("canvas").getContext("2d");
  brush.font = font;
  const room = menu.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  return [...menu.options]
    .map(({ label }) => label)
    .filter((label) => brush.measureText(label).width > room + 1);
})
"""
UNFOLD = """
() => {
  for (const one of document.querySelectorAll("[role=tabpanel]:not([hidden]) details")) {
    one.open = true;
  }
}
"""
EDGE_PX = 3
PHONE: ViewportSize = {"width": 390, "height": 844}
LAPTOP: ViewportSize = {"width": 1280, "height": 720}
SCREENS = pytest.mark.parametrize("screen", [PHONE, LAPTOP], ids=["phone", "laptop"])

FINGER_PX = 44
SMALL_TARGETS = """
(least) => [...document.querySelectorAll(
    ".cantata :is(button, select, summary, input, textarea, audio)")]
  .map((one) => one.matches("[type=checkbox]") ? one.closest("label") : one)
  .filter((one) => one.checkVisibility())
  .map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.width < least || box.height < least)
  .map(([one, { width, height }]) => `${one.outerHTML.slice(0, 90)}: ${width} x ${height}`)
"""
# Of each label in a chart: its size on the screen, and its box.
CHART_LABELS = """
(svg) => [...svg.querySelectorAll("text")].map((text) => {
  const { left, right, top, bottom } = text.getBoundingClientRect();
  const size = parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  return { size, left, right, top, bottom };
})
"""
# What the keyboard reaches, in its order: labels, names, or what is written on it.
FOCUSED = """
() => {
  const one = document.activeElement;
  return one.labels?.[0]?.textContent.trim().replace(/\\s+/g, " ") || one.textContent.trim();
}
"""


def is_in_sight(thing: Locator, screen: ViewportSize) -> bool:
    box = thing.bounding_box()
    assert box is not None
    inside = box["x"] >= 0 and box["x"] + box["width"] <= screen["width"]
    return inside and box["y"] >= 0 and box["y"] + box["height"] <= screen["height"]


def assert_result_in_sight(speech_page: SpeechPage, screen: ViewportSize) -> None:
    page = speech_page.page
    assert page.evaluate("window.scrollY") == 0
    speak = page.get_by_role("button", name="Speak", exact=True)
    waveform = page.get_by_role("img", name="Waveform")
    out = [
        str(one) for one in (speak, speech_page.status(), waveform) if not is_in_sight(one, screen)
    ]
    assert out == []


@pytest.mark.thorough(every=2)
@SCREENS
def test_button_status_and_waveform_are_in_sight_together(
    browser_page: Page, server: Server, screen: ViewportSize
) -> None:
    browser_page.set_viewport_size(screen)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    assert_result_in_sight(speech_page, screen)
    speech_page.write("The gate is open.")
    speech_page.press("Speak")
    speech_page.wait_for_state("playing", "done")  # it is short, and the machine may be busy
    assert_result_in_sight(speech_page, screen)
    speech_page.wait_for_state("done")
    assert_result_in_sight(speech_page, screen)


@SCREENS
def test_an_error_is_in_sight(browser_page: Page, server: Server, screen: ViewportSize) -> None:
    error = {"message": "16 requests are running", "code": "rate_limit_exceeded"}

    def refuse(route: WebSocketRoute) -> None:
        route.on_message(lambda _: route.send(json.dumps({"type": "error", "error": error})))

    browser_page.route_web_socket("**/v1/audio/speech/stream", refuse)
    browser_page.set_viewport_size(screen)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.press("Speak")
    expect(speech_page.status()).to_have_attribute("data-error", "true")
    assert_result_in_sight(speech_page, screen)


@SCREENS
def test_after_a_break_the_way_to_continue_is_in_sight(
    browser_page: Page, server: Server, screen: ViewportSize
) -> None:
    def break_off(route: WebSocketRoute) -> None:
        upstream = route.connect_to_server()

        def forward(message: str | bytes) -> None:
            route.send(message)
            if isinstance(message, bytes):
                route.close(code=1011)

        upstream.on_message(forward)

    browser_page.route_web_socket("**/v1/audio/speech/stream", break_off)
    browser_page.set_viewport_size(screen)
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    speech_page.press("Speak")
    again = browser_page.get_by_role("button", name="Speak again from here")
    expect(again).to_be_visible()
    assert is_in_sight(again, screen)
    assert_result_in_sight(speech_page, screen)


def test_the_keyboard_reaches_the_important_first_and_unfolds_the_rest(
    speech_page: SpeechPage,
) -> None:
    page = speech_page.page
    speed = page.get_by_label("Speed")
    expect(speed).to_be_hidden()
    speech_page.text.focus()
    reached = []
    for _ in range(4):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
    assert reached == ["Speak", "Voice", "Speak while I type", "Settings"]
    page.keyboard.press("Enter")
    expect(speed).to_be_visible()
    page.keyboard.press("Tab")
    expect(speed).to_be_focused()


def test_a_seed_is_offered_only_where_it_changes_something(
    speech_page: SpeechPage, server: Server
) -> None:
    models = {one["id"]: one for one in server.get("/v1/audio/models").json()["models"]}
    assert models[SHIPPED]["sampled"] is False
    page = speech_page.page
    seed = page.get_by_label("Seed", exact=True)
    configs: list[dict[str, Any]] = []

    def note(frame: str | bytes) -> None:
        message = json.loads(frame)
        if message["type"] == "session.config":
            configs.append(message)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    speech_page.write("One.")
    speech_page.open_settings()
    expect(seed).to_be_hidden()
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    assert "seed" not in configs[0]

    def sampled(route: Route) -> None:
        route.fulfill(json={"models": [{**models[SHIPPED], "sampled": True}]})

    page.route("**/v1/audio/models", sampled)
    page.reload()
    speech_page.wait_until_ready()
    speech_page.write("One.")
    speech_page.open_settings()
    seed.fill("7")
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    assert configs[-1]["seed"] == 7


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("width", [320, 390, 600])
def test_tabs_stand_in_even_rows_with_their_labels_in_one_line(
    speech_page: SpeechPage, width: int
) -> None:
    page = speech_page.page
    page.set_viewport_size({**PHONE, "width": width})
    assert page.evaluate(CROWDED_TABS) == []
    tablist = page.get_by_role("tablist")
    assert tablist.evaluate("one => one.scrollWidth <= one.clientWidth")
    rows: dict[float, list[tuple[int, int]]] = {}
    for tab in page.get_by_role("tab").all():
        box = tab.bounding_box()
        assert box is not None
        assert box["height"] >= FINGER_PX
        sides = round(box["x"]), round(box["x"] + box["width"])
        rows.setdefault(box["y"], []).append(sides)
    assert len(rows) > 1
    counts = [len(row) for row in rows.values()]
    assert max(counts) - min(counts) <= 1
    ends = {(row[0][0], row[-1][1]) for row in rows.values()}
    assert len(ends) == 1, "each row is as wide as the others"


def test_the_row_of_tabs_comes_back_where_there_is_room(speech_page: SpeechPage) -> None:
    page = speech_page.page
    page.set_viewport_size(PHONE)
    tablist = page.get_by_role("tablist")
    expect(tablist).to_have_attribute("data-stacked", "")
    page.set_viewport_size(LAPTOP)
    expect(tablist).not_to_have_attribute("data-stacked", "")
    boxes = [tab.bounding_box() for tab in page.get_by_role("tab").all()]
    assert len({box["y"] for box in boxes if box is not None}) == 1


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("tab", ["Speak", "Read", "Talk", "Draw"])
@SCREENS
def test_menus_show_what_is_chosen(speech_page: SpeechPage, tab: str, screen: ViewportSize) -> None:
    page = speech_page.page
    page.set_viewport_size(screen)
    speech_page.tab(tab)
    page.evaluate(UNFOLD)
    assert page.evaluate(CUT_MENUS) == []


def test_settings_keep_their_distance_from_what_follows(speech_page: SpeechPage) -> None:
    page = speech_page.page
    page.set_viewport_size(PHONE)
    speech_page.open_settings()
    menu = page.get_by_label("Model", exact=True).bounding_box()
    hear = page.get_by_role("button", name="Hear Clara", exact=True).bounding_box()
    assert menu is not None
    assert hear is not None
    assert hear["y"] - menu["y"] - menu["height"] >= 8


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("tab", TABS)
def test_a_finger_hits_every_control(speech_page: SpeechPage, tab: str) -> None:
    page = speech_page.page
    page.set_viewport_size(PHONE)
    if tab == "Speak":
        speech_page.open_settings()
    speech_page.tab(tab)
    assert page.evaluate(SMALL_TARGETS, FINGER_PX) == []


@pytest.mark.parametrize("tab", ["Speak", "Talk", "Lab"])
def test_explanations_open_by_touch_and_none_needs_a_mouse(
    browser: Browser, server: Server, tab: str
) -> None:
    context = browser.new_context(viewport=PHONE, has_touch=True)
    page = context.new_page()
    speech_page = SpeechPage(page)
    speech_page.open(server.url)
    speech_page.tab(tab)
    panel = page.get_by_role("tabpanel")
    if tab == "Speak":
        panel.get_by_text("Figures", exact=True).tap()
    expect(panel.locator(".meters dt").first).to_be_attached()
    terms = panel.locator(".meters dt").all_inner_texts()
    panel.get_by_text("What these figures mean").tap()
    explained = panel.locator(".explained dt")
    expect(explained.first).to_be_visible()
    assert explained.all_inner_texts() == terms
    assert page.locator(".cantata [title]").count() == 0
    context.close()


@SCREENS
def test_the_text_of_charts_can_be_read(speech_page: SpeechPage, screen: ViewportSize) -> None:
    page = speech_page.page
    page.set_viewport_size(screen)
    speech_page.tab("Lab")
    charts = page.get_by_role("region", name="Server", exact=True).get_by_role("img")
    expect(charts.first).to_be_visible()
    assert charts.count() == 4
    for chart in charts.all():
        labels = chart.evaluate(CHART_LABELS)
        assert min(label["size"] for label in labels) >= 12
        for i, one in enumerate(labels):
            for other in labels[:i]:
                beside = one["left"] >= other["right"] or other["left"] >= one["right"]
                above = one["top"] >= other["bottom"] or other["top"] >= one["bottom"]
                assert beside or above, f"{chart.get_attribute('aria-label')}: labels overlap"


def test_one_stream_is_one_stream(speech_page: SpeechPage) -> None:
    speech_page.tab("Lab")
    speech_page.streams.fill("1")
    speech_page.press("Start")
    expect(speech_page.status("Streams")).to_have_text(
        "1 of 1 stream completed.", timeout=SPEECH_DEADLINE_MS
    )


def picture(of: Locator) -> NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(of.screenshot())).convert("L"))


def share_that_differs(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    """Of the pixels: by more than smoothing of edges would explain."""
    return float((np.abs(one.astype(int) - other) > 96).mean())


def test_forced_colours_show_what_is_chosen(browser_page: Page, server: Server) -> None:
    """As on Windows with a contrast theme, which removes all backgrounds and shadows."""
    browser_page.emulate_media(forced_colors="active", reduced_motion="reduce")
    speech_page = SpeechPage(browser_page)
    speech_page.open(server.url)
    tab = browser_page.get_by_role("tab", name="Lab", exact=True)
    resting = picture(tab)
    tab.click()
    browser_page.mouse.move(0, 0)
    browser_page.get_by_role("tab", name="Speak", exact=True).focus()
    assert share_that_differs(resting, picture(tab)) > 0.3

    speech_page.tab("Speak")
    switch = browser_page.get_by_role("switch", name="Speak while I type")
    off = picture(switch)
    switch.click()
    speech_page.text.focus()
    assert share_that_differs(off, picture(switch)) > 0.2

    speech_page.tab("Your voice")
    consent = browser_page.get_by_label("has agreed")
    empty = picture(consent)
    consent.check()
    browser_page.get_by_label("Name", exact=True).focus()
    assert share_that_differs(empty, picture(consent)) > 0.1
