"""Fixtures: port -> server -> page, and what is kept when a test fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from benchmarks.server import free_port, running_server

from .server import Server
from .speech_page import SpeechPage

# In a virtual environment of their own: make test-clients.
collect_ignore = ["clients"]

ROOT = Path(__file__).parent.parent
ARTIFACTS = ROOT / "artifacts"
# A server that is running already, such as a container, is tested instead of starting one.
GIVEN_URL = os.environ.get("CANTATA_URL", "")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_ARGUMENTS = [
    "--no-sandbox",  # in containers the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",  # a microphone that beeps
    "--use-fake-ui-for-media-stream",
]

failed = pytest.StashKey[bool]()
readings = pytest.StashKey[list[str]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[failed] = True
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = terminalreporter.config.stash.get(readings, [])
    if lines:
        terminalreporter.section("playback")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Lines appended here are shown at the end of the run, also when every test passed."""
    lines: list[str] = []
    yield lines
    kept = request.config.stash.setdefault(readings, [])
    kept.extend(f"{request.node.name}: {line}" for line in lines)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def server(
    port: int, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if GIVEN_URL:
        yield Server(GIVEN_URL.rstrip("/"))
        return
    ARTIFACTS.mkdir(exist_ok=True)
    log = ARTIFACTS / f"server-{Path(request.node.name).stem}.log"
    failures = request.session.testsfailed
    voices = tmp_path_factory.mktemp("voices")
    with running_server(log, port=port, options=["--voices-dir", str(voices)]) as running:
        yield Server(running.url)
    if request.session.testsfailed == failures:
        log.unlink()


# Not for the whole session: while Playwright's synchronous side is open, an event loop counts as
# running in this thread, and tests in other modules could not start theirs.
@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def browser(playwright: Playwright) -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail(f"none of {', '.join(BROWSERS)} is installed: apt-get install chromium")
    browser = playwright.chromium.launch(executable_path=found, args=BROWSER_ARGUMENTS)
    yield browser
    browser.close()


@pytest.fixture
def browser_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A blank tab; a failure leaves its trace, picture and sound in artifacts/. No script of the
    page may throw what it does not catch."""
    context = browser.new_context(viewport={"width": 1280, "height": 940})
    context.tracing.start(screenshots=True, snapshots=True)
    page = context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    yield page
    if request.node.stash.get(failed, False):
        kept = ARTIFACTS / request.node.name
        kept.mkdir(parents=True, exist_ok=True)
        context.tracing.stop(path=kept / "trace.zip")
        page.screenshot(path=kept / "page.png", full_page=True)
        SpeechPage(page).save_played(kept / "played.wav")
    context.close()
    assert thrown == []


@pytest.fixture
def page(browser_page: Page, server: Server) -> Page:
    browser_page.goto(server.url)
    return browser_page


@pytest.fixture
def speech_page(page: Page) -> SpeechPage:
    """The page, open and ready to speak."""
    speech_page = SpeechPage(page)
    speech_page.wait_until_ready()
    return speech_page
