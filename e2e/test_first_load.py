"""The page's first load in a real browser: how little it fetches, and how soon it can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from threading import Thread
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from timed import timed

from .server import Server
from .speech_page import SpeechPage

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

MAX_REQUESTS = 8
MAX_BYTES = 84_000
LOADS = 5
MAX_TIMES_TRIVIAL = 5.0
"""The page's time to its heading over that of a page which is nothing but a heading."""
MAX_TIMES_TRIVIAL_USABLE = 12.0

# Resolves with milliseconds from the navigation to the first paint of text.
PAINTED = """
() => new Promise((resolve) => {
  new PerformanceObserver((list) => {
    const paint = list.getEntries().find(({ name }) => name === "first-contentful-paint");
    if (paint !== undefined) resolve(paint.startTime);
  }).observe({ type: "paint", buffered: true });
})
"""
TRANSFERRED = """
() => ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
  .map(({ name, transferSize }) => [new URL(name).pathname, transferSize])
"""


class TrivialPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b"<!doctype html><title>Trivial</title><h1>Trivial</h1>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def trivial_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), TrivialPage) as server:
        thread = Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@contextmanager
def fresh_tab(browser: Browser, *, scripts: bool = True) -> Iterator[Page]:
    """With an empty cache."""
    context = browser.new_context(java_script_enabled=scripts)
    yield context.new_page()
    context.close()


def test_a_first_load_fetches_little_and_only_from_the_server(
    browser: Browser, server: Server, figures: Callable[..., None]
) -> None:
    with fresh_tab(browser) as page:
        asked: set[str] = set()  # /ready is asked for again and again
        page.on("request", lambda request: asked.add(request.url))
        SpeechPage(page).open(server.url)
        transferred = page.evaluate(TRANSFERRED)
        size = sum(size for _, size in transferred)
        figures(test="first load", what=f"{len(asked)} requests, {size / 1000:.0f} kB")
        assert len(asked) <= MAX_REQUESTS, asked
        assert size <= MAX_BYTES, transferred
        assert {urlsplit(url).netloc for url in asked} == {urlsplit(server.url).netloc}
        assert not any("gradio" in url for url in asked), "Gradio is only linked"

        page.reload()
        SpeechPage(page).wait_until_ready()
        kept = {path: size for path, size in page.evaluate(TRANSFERRED) if "cantata_web" in path}
        assert len(kept) >= 2
        assert set(kept.values()) == {0}, "scripts and styles are kept and not asked for again"


def test_the_page_can_be_read_before_any_script_has_run(browser: Browser, server: Server) -> None:
    with fresh_tab(browser, scripts=False) as page:
        page.goto(server.url)
        expect(page.get_by_role("heading", name="Cantata")).to_be_visible()
        expect(page.get_by_role("textbox", name="Text to speak")).to_be_visible()
        expect(page.get_by_role("tabpanel")).to_have_count(1)
        missing = page.locator("noscript p")  # no role or text of it is in the tree
        expect(missing).to_be_visible()
        expect(missing).to_contain_text("This page needs JavaScript")


@timed(one_sided=True)
def test_the_page_is_there_nearly_as_soon_as_a_trivial_one(
    browser: Browser, server: Server, trivial_url: str, figures: Callable[..., None]
) -> None:
    """Loads alternate, so that both see the same machine."""
    trivial, heading, usable = [], [], []
    for _ in range(LOADS):
        with fresh_tab(browser) as page:
            page.goto(trivial_url)
            trivial.append(page.evaluate(PAINTED))
        with fresh_tab(browser) as page:
            page.goto(server.url)
            heading.append(page.evaluate(PAINTED))
            SpeechPage(page).wait_until_ready()
            usable.append(page.evaluate("performance.now()"))
    times = {
        "heading": f"{median(heading):.0f} ms",
        "usable": f"{median(usable):.0f} ms",
        "trivial page": f"{median(trivial):.0f} ms",
    }
    figures(test="first load", what=", ".join(f"{name} {time}" for name, time in times.items()))
    assert median(heading) <= MAX_TIMES_TRIVIAL * median(trivial), times
    assert median(usable) <= MAX_TIMES_TRIVIAL_USABLE * median(trivial), times
