"""The page says what the served models can do, and offers what they take and nothing else.

Tiny models with random weights: what they say and draw is noise, but the same noise for the same
request.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, Route, ViewportSize, WebSocketRoute, expect

from served import planned, served_plans
from tiny_painter.plugin import PLUGIN as PAINTER
from tiny_talker.directed import PLUGIN as TALKER
from tiny_talker.omni import PLUGIN as OMNI

from .offer_page import (
    PROMPT,
    SEED,
    TEXT,
    draw,
    drawn,
    facts,
    fill_drawing,
    keyboard_order,
    note_configs,
    sent,
    speak,
    speech_facts,
    tabs,
)
from .speech_page import SpeechPage
from .test_page_dark import MIN_CONTRAST, TOO_FAINT
from .test_page_layout import FINGER_PX, SMALL_TARGETS
from .test_page_tabs import UNNAMED_CONTROLS

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

NARROW: ViewportSize = {"width": 360, "height": 740}
SPEECH_TABS = ["Speak", "Read", "Talk", "Listen", "Voices", "Your voice", "Lab"]
ListChange = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
Opener = Callable[..., SpeechPage]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that speaks, draws and answers."""
    plans = [planned(one, tmp_path_factory.mktemp(one.name)) for one in (TALKER, PAINTER, OMNI)]
    with served_plans(plans, tmp_path_factory.mktemp("voices"), pages=True) as url:
        yield url


@pytest.fixture
def make_opener(browser_page: Page, url: str) -> Opener:
    """Opens the page, with what is changed in the server's lists."""

    def opened(
        speech: Callable[[dict[str, Any]], None] | None = None,
        models: ListChange | None = None,
    ) -> SpeechPage:
        def change_speech(route: Route) -> None:
            listed = route.fetch().json()
            for model in listed["models"]:
                assert speech is not None
                speech(model)
            route.fulfill(json=listed)

        def change_models(route: Route) -> None:
            listed = route.fetch().json()
            assert models is not None
            route.fulfill(json={**listed, "data": models(listed["data"])})

        if speech is not None:
            browser_page.route("**/v1/audio/models", change_speech)
        if models is not None:
            browser_page.route("**/v1/models", change_models)
        speech_page = SpeechPage(browser_page)
        speech_page.open(url)
        return speech_page

    return opened


def test_the_page_says_what_is_served(make_opener: Opener) -> None:
    speech_page = make_opener()
    page = speech_page.page
    tagline = page.locator(".tagline")
    expect(tagline).to_have_text("Speech, answers and pictures while they are still being made.")
    assert tabs(page) == [
        "Speak",
        "Read",
        "Chat",
        "Talk",
        "Draw",
        "Listen",
        "Voices",
        "Your voice",
        "Lab",
    ]
    assert speech_facts(page) == {
        "Sound": "24 kHz, stereo",
        "Voices": "2 of its own; follows a description in words",
        "Languages": "English and German",
        "Pace": "From 0.5\N{MULTIPLICATION SIGN} to 2\N{MULTIPLICATION SIGN}; beyond that, "
        "the sound is stretched",
        "Text": "Up to 100,000 characters at a time",
    }
    speech_page.tab("Lab")
    rows = page.get_by_role("region", name="Models").get_by_role("row")
    assert [row.locator("th, td").all_inner_texts() for row in rows.all()[1:]] == [
        ["tiny-directed", "text", "sound"],
        ["tiny-omni", "text and sound", "text and sound"],
        ["tiny-painter", "text and pictures", "pictures"],
    ]
    speech_page.tab("Draw")
    page.locator("#cantata-draw summary", has_text="What this model does").click()
    assert facts(page.locator("[data-role=picture-facts]")) == {
        "Sizes": "Up to the area of 256 \N{MULTIPLICATION SIGN} 256 pixels; sides from 16 in steps "
        "of 8",
        "Edits": "Yes, up to 2 pictures at a time",
        "Steps": "4 by default, at most 200",
        "Guidance": "1 by default, at most 20",
    }


def test_directions_and_options_reach_the_model(make_opener: Opener, url: str) -> None:
    speech_page = make_opener()
    page, configs = speech_page.page, note_configs(speech_page.page)
    speech_page.write(TEXT)
    speech_page.open_settings()
    np.testing.assert_array_equal(speak(speech_page), sent(url))
    assert {"instructions", "drawl", "mood"}.isdisjoint(configs[-1])

    page.get_by_label("Voice and manner, in words").fill("Slowly.")
    page.get_by_label("Drawl").fill("21")
    page.get_by_label("Mood").select_option("glad")
    speech_page.press("Speak")
    expect(speech_page.status()).to_have_text(
        "Drawl must be a whole number, at least 0 and at most 20."
    )
    expect(page.get_by_label("Drawl")).to_be_focused()
    page.get_by_label("Drawl").fill("5")
    asked = {"instructions": "Slowly.", "drawl": 5, "mood": "glad"}
    directed = speak(speech_page)
    np.testing.assert_array_equal(directed, sent(url, **asked))
    assert len(directed) == 2 * len(sent(url)), "each word lasts twice as long"
    assert configs[-1].items() >= asked.items()

    page.get_by_label("Drawl").fill("")
    page.get_by_label("Mood").select_option("")
    page.get_by_label("Voice and manner, in words").fill("")
    takes = page.get_by_role("list", name="Last takes").get_by_role("listitem")
    takes.first.get_by_role("button", name="Use again").click()
    expect(page.get_by_label("Drawl")).to_have_value("5")
    expect(page.get_by_label("Mood")).to_have_value("glad")
    expect(page.get_by_label("Voice and manner, in words")).to_have_value("Slowly.")
    takes.nth(1).get_by_role("button", name="Use again").click()
    expect(page.get_by_label("Drawl")).to_have_value("")
    expect(page.get_by_label("Voice and manner, in words")).to_have_value("")


def test_a_voice_is_heard_as_the_directions_say(make_opener: Opener) -> None:
    speech_page = make_opener()
    page = speech_page.page
    speech_page.open_settings()
    page.get_by_label("Voice and manner, in words").fill("Slowly.")
    with page.expect_request("**/v1/audio/speech") as asked:
        speech_page.press("Hear Low")
    body = asked.value.post_data_json or {}
    assert (body["voice"], body["instructions"]) == ("low", "Slowly.")
    speech_page.press("Stop Low")


def test_a_pace_of_the_models_own_is_used(make_opener: Opener, url: str) -> None:
    speech_page = make_opener()
    speech_page.write(TEXT)
    speech_page.choose_speed(2)
    played = speak(speech_page)
    assert len(played) == len(sent(url)) / 2
    np.testing.assert_array_equal(played, sent(url, speed=2.0))


def test_a_models_own_options_change_its_pictures(make_opener: Opener, url: str) -> None:
    speech_page = make_opener()
    page = speech_page.page
    fill_drawing(speech_page)
    asked = {"prompt": PROMPT, "seed": SEED}
    own: dict[str, Any] = {"shade": 0.5, "ink": "grey", "mirrored": True}
    generations = f"{url}/v1/images/generations"
    plain = drawn(httpx.post(generations, json=asked, timeout=60))
    np.testing.assert_array_equal(draw(page), plain)
    page.get_by_label("Shade").fill("0.5")
    page.get_by_label("Ink").select_option("grey")
    page.get_by_label("Mirrored").select_option("Yes")
    changed = draw(page)
    assert (changed != plain).any()
    expected = drawn(httpx.post(generations, json={**asked, **own}, timeout=60))
    np.testing.assert_array_equal(changed, expected)

    cards = page.get_by_role("region", name="Pictures").get_by_role("listitem")
    cards.nth(1).get_by_role("button", name="Use again").click()
    expect(page.get_by_label("Shade")).to_have_value("")
    expect(page.get_by_label("Mirrored")).to_have_value("")
    cards.first.get_by_role("button", name="Use again").click()
    expect(page.get_by_label("Shade")).to_have_value("0.5")
    expect(page.get_by_label("Mirrored")).to_have_value("true")

    written = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 30, 90)).save(written, "PNG")
    page.locator("#cantata-pictures").set_input_files(
        {"name": "own.png", "mimeType": "image/png", "buffer": written.getvalue()}
    )
    files = {"image": ("own.png", written.getvalue(), "image/png")}
    form = {name: str(value) for name, value in {**asked, **own, "mirrored": "true"}.items()}
    edits = httpx.post(f"{url}/v1/images/edits", data=form, files=files, timeout=60)
    np.testing.assert_array_equal(draw(page), drawn(edits))


def test_an_option_that_the_server_refuses_is_told_at_its_field(make_opener: Opener) -> None:
    speech_page = make_opener()
    page = speech_page.page

    def exaggerate(route: Route) -> None:
        route.continue_(post_data={**(route.request.post_data_json or {}), "shade": 2})

    page.route("**/v1/images/generations", exaggerate)
    fill_drawing(speech_page)
    page.get_by_role("button", name="Draw", exact=True).click()
    status = page.get_by_role("region", name="Pictures").get_by_role("status")
    expect(status).to_contain_text("Shade: Input should be less than or equal to 1")
    expect(page.get_by_label("Shade")).to_be_focused()


def test_controls_of_what_a_model_does_not_take_are_not_there(make_opener: Opener) -> None:
    def plain(model: dict[str, Any]) -> None:
        model.update(sample_rate=48_000, channels=1, max_input_characters=500)
        model["capabilities"] = {
            **model["capabilities"],
            "instructions": False,
            "references": True,
            "languages": ["en", "fr", "zh"],
            "paces": [1.0, 1.0],
            "speaker_tag": "<|speaker:{n}|>",
            "options": {},
        }

    def unguided(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for model in models:
            if model["images"] is not None:
                model["images"].update(max_guidance=1.0, max_references=0, options={})
        return models

    speech_page = make_opener(speech=plain, models=unguided)
    page = speech_page.page
    speech_page.open_settings()
    expect(page.get_by_label("Voice and manner, in words")).to_be_hidden()
    expect(page.get_by_text("Options of this model").first).to_be_hidden()
    told = speech_facts(page)
    assert told["Sound"] == "48 kHz, mono"
    assert told["Voices"] == "2 of its own, and any that you record"
    assert told["Languages"] == "English, French and Chinese"
    assert told["Pace"] == "One; for other speeds, the sound is stretched"
    assert told["Text"] == "Up to 500 characters at a time"
    assert "<|speaker:0|>, <|speaker:1|>" in told["Speakers"]
    speech_page.press("Two speakers")
    assert re.findall(r"<\|speaker:\d\|>", speech_page.text.input_value()) == [
        "<|speaker:0|>",
        "<|speaker:1|>",
        "<|speaker:0|>",
    ]
    speech_page.tab("Draw")
    for hidden in ("Guidance", "Options of this model"):
        expect(page.locator("#cantata-draw summary", has_text=hidden)).to_be_hidden()
    expect(page.locator("#cantata-pictures")).to_be_hidden()


def test_options_of_any_schema_have_a_control(make_opener: Opener) -> None:
    own = {
        "cfg_interval": {
            "type": "array",
            "prefixItems": [{"type": "number", "minimum": 0}, {"type": "number", "maximum": 1}],
            "description": "Between these there is guidance.",
        },
        "scale": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5},
        "brush": {"type": "string"},
    }

    def with_options(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for model in models:
            if model["images"] is not None:
                model["images"].update(options=own, negative_prompt=False)
        return models

    speech_page = make_opener(models=with_options)
    page = speech_page.page
    bodies: list[dict[str, Any]] = []

    def note(route: Route) -> None:
        bodies.append(route.request.post_data_json or {})
        route.continue_()

    page.route("**/v1/images/generations", note)
    fill_drawing(speech_page)
    page.locator("summary", has_text="Guidance").click()
    expect(page.get_by_label("Guidance (1 turns it off)")).to_be_visible()
    expect(page.get_by_label("What it should not show")).to_be_hidden()
    interval, scale = page.get_by_label("Cfg interval"), page.get_by_label("Scale")
    expect(interval).to_have_accessible_description("Between these there is guidance.")
    expect(scale).to_have_attribute("placeholder", "0.5")
    status = page.get_by_role("region", name="Pictures").get_by_role("status")
    for control, wrong, told in (
        (interval, "0.4, 1", "Cfg interval must be JSON, as [0,1]."),
        (scale, "0", "Scale must be a number, above 0 and at most 1."),
    ):
        control.fill(wrong)
        page.get_by_role("button", name="Draw", exact=True).click()
        expect(status).to_have_text(told)
        expect(control).to_be_focused()
        control.fill("")
    assert bodies == []
    interval.fill("[0.4, 1]")
    page.get_by_label("Brush").fill("42")
    draw(page)
    asked = {name: bodies[-1].get(name) for name in own}
    assert asked == {"cfg_interval": [0.4, 1], "scale": None, "brush": "42"}


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("served", "tagline", "offered"),
    [
        ("tiny-directed", "Speech you hear while it is still being made.", SPEECH_TABS),
        (
            "tiny-painter",
            "Pictures you see while they are still being drawn.",
            ["Draw", "Listen", "Lab"],
        ),
        (
            "tiny-omni",
            "Answers that arrive while they are still being made.",
            ["Chat", "Talk", "Listen", "Lab"],
        ),
        (
            "reader",
            "Answers that arrive while they are still being made.",
            ["Chat", "Listen", "Lab"],
        ),
        (
            "both",
            "Answers and pictures while they are still being made.",
            ["Chat", "Draw", "Listen", "Lab"],
        ),
    ],
)
def test_the_words_and_the_tabs_follow_what_is_served(
    make_opener: Opener, browser_page: Page, served: str, tagline: str, offered: list[str]
) -> None:
    """As if only this model were served; the reader takes no sound."""

    def only(models: list[dict[str, Any]]) -> list[dict[str, Any]]:
        (omni,) = (model for model in models if model["id"] == OMNI.name)
        (painter,) = (model for model in models if model["id"] == PAINTER.name)
        seen = {"input_modalities": ["text", "image"]}
        reader = {**omni, **seen, "id": "reader"}
        both = {**painter, **seen, "id": "both", "output_modalities": ["text", "image"]}
        return [model for model in [*models, reader, both] if model["id"] == served]

    def nothing(route: Route) -> None:
        route.fulfill(json={"models": [], "voices": []})

    if served != TALKER.name:
        browser_page.route("**/v1/audio/*", nothing)
    speech_page = make_opener(models=only)
    page = speech_page.page
    expect(page.locator(".tagline")).to_have_text(tagline)
    assert tabs(page) == offered
    expect(page.get_by_role("tabpanel", name=offered[0], exact=True)).to_be_visible()
    expect(page.get_by_label("Voice that answers")).to_be_hidden()
    speech_page.tab("Lab")
    expect(page.get_by_role("region", name="Server", exact=True)).to_be_visible()
    streams = page.get_by_role("region", name="In parallel")
    expect(streams).to_be_visible(visible=served == TALKER.name)


@pytest.mark.parametrize(
    ("answerer", "model", "voice"),
    [("The chosen voice", TALKER.name, "low"), (OMNI.name, OMNI.name, None)],
)
def test_a_talk_is_answered_by_the_model_that_is_chosen(
    make_opener: Opener, answerer: str, model: str, voice: str | None
) -> None:
    speech_page = make_opener()
    page = speech_page.page
    asked: list[tuple[str, dict[str, Any]]] = []

    def answer(route: WebSocketRoute) -> None:
        (named,) = parse_qs(urlsplit(route.url).query)["model"]

        def take(text: str | bytes) -> None:
            event = json.loads(text)
            if event["type"] == "session.update":
                asked.append((named, event["session"]))
                route.send(json.dumps({"type": "session.updated"}))

        route.on_message(take)

    page.route_web_socket("**/v1/realtime*", answer)
    speech_page.tab("Talk")
    page.get_by_label("Answered by").select_option(answerer)
    expect(page.get_by_label("Voice that answers")).to_be_visible(visible=voice is not None)
    speech_page.press("Start talking")
    page.wait_for_function("window.cantata.talk.state === 'listening'")
    ((named, session),) = asked
    assert named == model
    assert session["audio"]["output"].get("voice") == voice


def test_a_link_has_the_directions_and_says_where_they_mean_nothing(
    make_opener: Opener, url: str
) -> None:
    speech_page = make_opener()
    page = speech_page.page
    speech_page.open(f"{url}?text=Hello.&instructions=Slowly.")
    speech_page.open_settings()
    expect(page.get_by_label("Voice and manner, in words")).to_have_value("Slowly.")
    expect(page.locator("[data-role=link-notice]")).to_be_hidden()

    def undirected(route: Route) -> None:
        listed = route.fetch().json()
        listed["models"][0]["capabilities"]["instructions"] = False
        route.fulfill(json=listed)

    page.route("**/v1/audio/models", undirected)
    speech_page.open(f"{url}?instructions=Slowly.")
    expect(page.locator("[data-role=link-notice]")).to_contain_text(
        "The link asks for the instructions \u201cSlowly.\u201d, which is not offered."
    )


def test_an_omni_model_answers_in_words_and_aloud(make_opener: Opener) -> None:
    speech_page = make_opener()
    page = speech_page.page
    speech_page.tab("Chat")
    page.get_by_role("switch", name="Answer aloud").check()
    page.get_by_label("Your message").fill("Hello.")
    with page.expect_request("**/v1/chat/completions") as asked:
        speech_page.press("Send")
    assert json.loads(asked.value.post_data or "{}")["model"] == OMNI.name
    page.wait_for_function("window.cantata.chat.loud.seconds > 0", timeout=60_000)
    speech_page.press("Stop")
    answer = page.get_by_role("log", name="Conversation").get_by_role("listitem").nth(1)
    expect(answer).not_to_have_text("Answer")
    assert page.evaluate("window.cantata.chat.loud.sounding") is False


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("look", ["light", "dark", "forced"])
def test_it_can_be_read_and_reached(make_opener: Opener, browser_page: Page, look: str) -> None:
    browser_page.emulate_media(
        color_scheme="dark" if look == "dark" else "light",
        forced_colors="active" if look == "forced" else "none",
    )
    speech_page = make_opener()
    page = speech_page.page
    speech_page.open_settings()
    reached = keyboard_order(page, "Speed", 3)
    assert reached == ["Voice and manner, in words", "Drawl", "Mood"]
    for tab in ("Speak", "Chat", "Talk", "Draw", "Lab"):
        page.set_viewport_size({"width": 1280, "height": 940})
        speech_page.tab(tab)
        for folded in page.locator("[role=tabpanel]:visible details:not([open]) > summary").all():
            if folded.is_visible():
                folded.click()
        assert page.evaluate(TOO_FAINT, MIN_CONTRAST) == [], tab
        assert page.evaluate(UNNAMED_CONTROLS) == [], tab
        page.set_viewport_size(NARROW)
        assert page.evaluate(SMALL_TARGETS, FINGER_PX) == [], tab
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], tab
