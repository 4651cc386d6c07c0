"""The page's other tabs in a real browser: a voice of one's own, many streams, the server."""

from __future__ import annotations

import math
import re

import pytest
from playwright.sync_api import Page, Route, expect

from .read_page import DROP_FOLDER
from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

TABS = ("Speak", "Read", "Talk", "Listen", "Voices", "Your voice", "Lab")
RUN_DEADLINE_MS = 120_000

UNNAMED_CONTROLS = """
() => [...document.querySelectorAll(".cantata :is(button, input, select, textarea, canvas)")]
  .filter((one) => one.ariaHidden !== "true" && one.ariaLabel === null)
  .filter((one) => !one.labels?.length && one.textContent.trim() === "")
  .map((one) => one.outerHTML)
"""


def test_it_says_whether_a_model_can_follow_a_recording(
    speech_page: SpeechPage, server: Server
) -> None:
    models = server.get("/v1/audio/models").json()["models"]
    follows = any(model["capabilities"]["references"] for model in models)
    speech_page.tab("Your voice")
    notice = speech_page.page.get_by_text("it cannot follow a recording")
    expect(notice).to_be_visible(visible=not follows)


def test_it_offers_to_draw_only_where_a_model_draws(
    speech_page: SpeechPage, server: Server
) -> None:
    models = server.get("/v1/models").json()["data"]
    draws = any(model["images"] is not None for model in models)
    tab = speech_page.page.get_by_role("tab", name="Draw", exact=True)
    expect(tab).to_be_visible(visible=draws)


def test_what_is_dropped_on_a_model_that_edits_nothing_is_refused(
    speech_page: SpeechPage, server: Server
) -> None:
    models = server.get("/v1/models").json()["data"]
    (painter,) = [model for model in models if model["images"] is not None]
    assert painter["images"]["max_references"] == 0
    speech_page.tab("Draw")
    speech_page.page.locator("#cantata-draw").evaluate(DROP_FOLDER)
    expect(speech_page.status("Pictures")).to_have_text("This model edits no pictures.")


def test_it_is_ready_when_every_tab_is_in_its_place(browser_page: Page, server: Server) -> None:
    held: list[Route] = []
    browser_page.route("**/v1/models", lambda route: held.append(route))
    with browser_page.expect_response("**/v1/audio/voices") as voices:
        browser_page.goto(server.url)
    voices.value.finished()
    notice = browser_page.locator("[data-role=server]")
    expect(browser_page.get_by_role("combobox", name="Voice").first).not_to_be_empty()
    expect(notice).not_to_have_attribute("data-ready", "true")
    for route in held:
        route.continue_()
    expect(notice).to_have_attribute("data-ready", "true")


def test_streams_in_parallel_are_each_timed(speech_page: SpeechPage, server: Server) -> None:
    page = speech_page.page
    speech_page.tab("Lab")
    speech_page.streams.fill("2")
    speech_page.press("Start")
    expect(speech_page.status("Streams")).to_contain_text(
        "of 2 streams completed", timeout=RUN_DEADLINE_MS
    )
    streams = page.evaluate("window.cantata.streams.map(s => [s.outcome, s.listener.firstAt])")
    lanes = page.get_by_role("region", name="Streams").get_by_role("listitem")
    assert len(streams) == lanes.count() == 2
    assert any(outcome == "done" for outcome, _ in streams)
    for lane, (outcome, first_at) in enumerate(streams):
        # A busy machine may get more than it can keep up with, and then says so.
        rounded_ms = math.floor(first_at * 1000 + 0.5)  # halves up, as JavaScript does
        told = f"{rounded_ms} ms" if outcome == "done" else "429"
        expect(lanes.nth(lane)).to_contain_text(told)
    # Below the lanes, what the server says of the same streams.
    count = int(server.gauge("cantata_audio_ttfp_seconds_count"))
    drawn = page.get_by_role("region", name="Server", exact=True).get_by_role("img")
    expect(drawn.nth(1)).to_have_attribute("aria-label", re.compile(rf" of {count}$"))


def test_a_tab_that_could_not_be_fetched_comes_once_the_server_is_back(
    speech_page: SpeechPage,
) -> None:
    page = speech_page.page
    page.route("**/cantata_web/read-*.html", lambda route: route.abort())
    speech_page.tab("Read")
    panel = page.get_by_role("tabpanel")
    expect(panel).to_contain_text("could not be fetched")
    page.unroute("**/cantata_web/read-*.html")
    speech_page.tab("Speak")
    speech_page.tab("Read")
    expect(panel.get_by_label("Or paste a text")).to_be_visible()
    expect(panel).not_to_contain_text("could not be fetched")


def test_the_servers_figures_are_drawn(speech_page: SpeechPage, server: Server) -> None:
    page = speech_page.page
    speech_page.write("One.")
    speech_page.press("Speak")
    speech_page.wait_for_state("done")
    speech_page.tab("Lab")
    count = int(server.gauge("cantata_audio_ttfp_seconds_count"))
    drawn = page.get_by_role("img", name="First packet after")
    expect(drawn).to_have_attribute("aria-label", re.compile(rf" of {count}$"))
    expect(drawn.locator("rect").first).to_be_attached()
    stages = [stage["stage"] for stage in server.get("/health").json()["stages"]]
    rows = page.get_by_role("region", name="Stages").get_by_role("row")
    expect(rows).to_have_count(1 + len(stages))
    expect(rows.nth(1)).to_contain_text("alive")


def test_speech_goes_on_while_another_tab_is_looked_at(speech_page: SpeechPage) -> None:
    speech_page.write("We walk along the river.")
    speech_page.press("Speak")
    speech_page.tab("Lab")
    speech_page.wait_for_state("done")
    metrics = speech_page.metrics()
    assert metrics["playedFrames"] == metrics["server"]["samples"]


def test_tabs_go_by_the_keyboard(speech_page: SpeechPage) -> None:
    page = speech_page.page
    tabs = page.get_by_role("tab").all_inner_texts()
    assert set(TABS) <= set(tabs)
    page.get_by_role("tab", name="Speak").focus()
    for name in (*tabs[1:], tabs[0]):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name, exact=True)).to_be_focused()
        expect(page.get_by_role("tabpanel", name=name, exact=True)).to_be_visible()
        expect(page.get_by_role("tabpanel")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(speech_page.text).to_be_focused()


def test_every_control_has_a_name(speech_page: SpeechPage) -> None:
    assert speech_page.page.evaluate(UNNAMED_CONTROLS) == []


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("tab", TABS)
def test_a_narrow_screen_scrolls_in_one_direction(speech_page: SpeechPage, tab: str) -> None:
    page = speech_page.page
    page.set_viewport_size({"width": 360, "height": 740})
    speech_page.tab(tab)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_dark_is_dark(browser_page: Page, server: Server) -> None:
    browser_page.emulate_media(color_scheme="dark")
    SpeechPage(browser_page).open(server.url)
    colours = browser_page.evaluate(
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('#cantata-text')).color]"
    )
    paper, ink = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in colours)
    assert paper < 150 < 600 < ink
