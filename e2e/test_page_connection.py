"""What the page says while its server freezes, dies and comes back."""

from __future__ import annotations

import time

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from timed import timed

from .conftest import GIVEN_URL
from .own_server import OwnServer
from .speech_page import LOAD_DEADLINE_MS, SpeechPage

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.level2,
    pytest.mark.skipif(bool(GIVEN_URL), reason="a given server's process is not ours to stop"),
]

TABS = ("Speak", "Read", "Talk", "Listen", "Voices", "Your voice", "Lab")
NOTICE_S = 3.0
# Long enough that the server is killed in the middle of it; fast, so that it soon has played.
SPEED = 4
TEXT = " ".join(
    f"In the year {year} the river rose again, and the lower town stood under water for a week."
    for year in range(1901, 1904)
)
IN_SIGHT = """
(notice) => {
  window.scrollTo(0, document.body.scrollHeight);
  const { top, bottom } = notice.getBoundingClientRect();
  return notice.textContent.trim() !== "" && top >= 0 && bottom <= window.innerHeight;
}
"""


@pytest.fixture
def speech_page(browser_page: Page, own_server: OwnServer) -> SpeechPage:
    speech_page = SpeechPage(browser_page)
    own_server.open(speech_page)
    return speech_page


def find_notice(page: Page) -> Locator:
    return page.locator("[data-role=server]")


def expect_notice_on_every_tab(speech_page: SpeechPage, sentence: str) -> None:
    notice = find_notice(speech_page.page)
    for tab in TABS:
        speech_page.choose_tab(tab)
        expect(notice).to_have_text(sentence)
        assert notice.evaluate(IN_SIGHT), f"out of sight on the tab {tab}"


def test_a_frozen_server_is_noticed_on_every_tab_until_it_answers_again(
    speech_page: SpeechPage, own_server: OwnServer
) -> None:
    speech_page.tab("Lab")  # which comes late: a frozen server sends nothing
    figures = speech_page.page.locator("[data-role=metrics-status]")
    expect(figures).to_contain_text("Live")
    with own_server.frozen():
        expect_notice_on_every_tab(speech_page, "The server does not answer.")
        expect(figures).to_have_text("The server does not answer.")
    expect(find_notice(speech_page.page)).to_have_text("Ready, 4 voices", timeout=LOAD_DEADLINE_MS)
    assert find_notice(speech_page.page).get_attribute("data-lost") == "false"


@timed(one_sided=True)
def test_a_frozen_server_is_noticed_within_three_seconds(
    speech_page: SpeechPage, own_server: OwnServer
) -> None:
    speech_page.wait_until_ready()
    with own_server.frozen():
        began = time.monotonic()
        expect(find_notice(speech_page.page)).to_have_attribute("data-lost", "true")
        assert time.monotonic() - began <= NOTICE_S


def test_a_hidden_page_asks_nothing(browser_page: Page, own_server: OwnServer) -> None:
    browser_page.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden === true })"
    )
    browser_page.clock.install()
    speech_page = SpeechPage(browser_page)
    own_server.open(speech_page)
    speech_page.tab("Lab")
    expect(speech_page.page.locator("[data-role=metrics-status]")).to_contain_text("Live")
    asked: list[str] = []
    change = "document.dispatchEvent(new Event('visibilitychange'))"
    browser_page.evaluate(f"window.isHidden = true; {change}")
    browser_page.wait_for_load_state("networkidle")
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.clock.run_for(60_000)
    assert asked == []
    with (
        browser_page.expect_request("**/ready"),
        browser_page.expect_request("**/metrics"),
    ):
        browser_page.evaluate(f"window.isHidden = false; {change}")


def begin_long_speech(speech_page: SpeechPage) -> None:
    """Returns when its first sound has come."""
    speech_page.choose_speed(SPEED)
    speech_page.write(TEXT)
    speech_page.press("Speak")
    speech_page.page.wait_for_function("window.cantata.metrics.receivedFrames > 0")


def expect_the_rest_spoken(speech_page: SpeechPage, own_server: OwnServer, came: int) -> None:
    """After a break behind `came` samples: from there on, the whole text's samples."""
    notice = find_notice(speech_page.page)
    expect(notice).to_have_text("Ready, 4 voices", timeout=LOAD_DEADLINE_MS)
    speech_page.press("Speak again from here")
    speech_page.wait_for_state("done")
    answer = own_server.server.speech(input=TEXT, response_format="pcm", **speech_page.chosen())
    whole = np.frombuffer(answer.content, dtype="<i2")
    assert came < len(whole)
    np.testing.assert_array_equal(speech_page.played(), whole)


def test_a_stream_whose_connection_is_lost_without_a_close_ends_and_can_be_continued(
    speech_page: SpeechPage, own_server: OwnServer
) -> None:
    begin_long_speech(speech_page)
    with own_server.frozen():
        speech_page.page.wait_for_function("window.cantata.state === 'error'")
        expect(speech_page.status()).to_have_text("The server does not answer.")
        came = speech_page.metrics()["receivedFrames"]
        assert came == len(speech_page.played())
    expect_the_rest_spoken(speech_page, own_server, came)


def test_a_killed_server_is_noticed_and_its_successor_speaks_the_rest(
    speech_page: SpeechPage, own_server: OwnServer
) -> None:
    page = speech_page.page
    begin_long_speech(speech_page)
    own_server.kill()
    expect_notice_on_every_tab(speech_page, "The server cannot be reached. Is it running?")
    speech_page.tab("Speak")
    expect(speech_page.status()).to_have_text(
        "The connection closed before the speech was complete."
    )
    page.wait_for_function("window.cantata.state === 'error'")
    came = speech_page.metrics()["receivedFrames"]
    assert came == len(speech_page.played())

    own_server.start()
    expect_the_rest_spoken(speech_page, own_server, came)
