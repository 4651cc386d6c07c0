"""Fixtures: server -> page, what is kept when a test fails, and the figures' tables."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect
from rich.console import Console
from rich.table import Table

from cantata.config.plugins import locate
from cantata_bench.server import free_port, running_server

from .chromium import Driver
from .own_server import OwnServer
from .server import Server
from .speech_page import LOAD_DEADLINE_MS, SpeechPage

# Playwright waits 5 s otherwise: on a busy machine a page may take longer.
expect.set_options(timeout=LOAD_DEADLINE_MS)

# With packages of their own: make test-clients, make test-cluster.
collect_ignore = ["clients", "cluster"]

ROOT = Path(__file__).parent.parent
ARTIFACTS = ROOT / "artifacts"
# A server that is running already, such as a container, is tested instead of starting one.
GIVEN_URL = os.environ.get("CANTATA_URL", "")

SHIPPED = locate(None).plugin.name
"""The default model."""
KNOWN = "solo"
"""The embedded model whose teachers' readings are known."""

LEVELS = {
    "level1": "Level 1: files",
    "level2": "Level 2: one browser",
    "level3": "Level 3: many at a time",
}

TABLE_WIDTH = 120
FIGURES = "figures"
Row = dict[str, str]
failed = pytest.StashKey[bool]()
open_driver = pytest.StashKey[Driver]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[failed] = True
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows: dict[str, list[Row]] = defaultdict(list)
    for report in (r for many in terminalreporter.stats.values() for r in many):
        if getattr(report, "when", "") == "call":
            for level, row in (value for name, value in report.user_properties if name == FIGURES):
                rows[level].append(row)
    for level, of_level in sorted(rows.items()):
        table = Table(title=LEVELS[level])
        columns = list(dict.fromkeys(name for row in of_level for name in row))
        for name in columns:
            table.add_column(name)
        for row in of_level:
            table.add_row(*(row.get(name, "") for name in columns))
        console = Console(width=TABLE_WIDTH)
        with console.capture() as drawn:
            console.print(table)
        terminalreporter.write(drawn.get())


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Adds a row to the table of the test's level, shown at the end of every run."""
    (level,) = (name for name in LEVELS if request.node.get_closest_marker(name))
    found = request.node.user_properties

    def add(**row: object) -> None:
        # As text: the report travels between processes, which not every object can.
        found.append((FIGURES, (level, {name: str(value) for name, value in row.items()})))

    return add


@pytest.fixture
def kept(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder for what explains a failure; it stays only after one."""
    # With the file's name: tests of the same name in two files run at the same time.
    folder = ARTIFACTS / f"{request.node.path.stem}-{request.node.name}"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    if not request.node.stash.get(failed, False):
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def model() -> str | None:
    """The model to serve; None is the default. Modules with other needs override it."""
    return None


@contextmanager
def serving(
    name: str, model: str | None, request: pytest.FixtureRequest, voices: Path, *more: str
) -> Iterator[Server]:
    """A server whose output is kept if a test fails meanwhile."""
    ARTIFACTS.mkdir(exist_ok=True)
    # Every worker has servers of its own.
    log = ARTIFACTS / f"server-{name}-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.log"
    failures = request.session.testsfailed
    options = ["--voices-dir", str(voices), "--jobs-dir", str(voices.with_suffix(".jobs"))]
    options += [*(["--model", model] if model else []), *more]
    with running_server(log, options=options) as running:
        yield Server(running.url)
    if request.session.testsfailed == failures:
        log.unlink()


@pytest.fixture(scope="session")
def other_origin() -> str:
    """An origin that the default server lets in."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="session")
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, other_origin: str
) -> Iterator[Server]:
    """The default server, for every module that only sends requests (`backend/tests/lanes.py`)."""
    voices = tmp_path_factory.mktemp("voices")
    with serving("shared", None, request, voices, "--allow-origin", other_origin) as server:
        yield server


@pytest.fixture(scope="session")
def known_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server of `KNOWN` alone, for every module whose judges know its voices."""
    with serving("known", KNOWN, request, tmp_path_factory.mktemp("voices")) as server:
        yield server


@pytest.fixture(scope="module")
def server(
    model: str | None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    if GIVEN_URL:
        yield Server(GIVEN_URL.rstrip("/"))
    elif model is None:
        yield request.getfixturevalue("shared_server")
    elif model == KNOWN:
        yield request.getfixturevalue("known_server")
    else:
        name = Path(request.node.name).stem
        with serving(name, model, request, tmp_path_factory.mktemp("voices")) as server:
            yield server


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A server of its own for the modules that lock, break, freeze or kill it
    (`backend/tests/lanes.py`)."""
    ARTIFACTS.mkdir(exist_ok=True)
    own = OwnServer(tmp_path_factory.mktemp("own"), ARTIFACTS)
    own.start()
    yield own
    own.stop()


@pytest.fixture(scope="session")
def driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    driver = request.session.stash[open_driver] = Driver()
    yield driver
    driver.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, bool | None, bool | None]:
    """One browser for the modules that follow each other with one. Not for the whole session: while
    Playwright's synchronous side is open, an event loop counts as running in this thread, and
    tests in other modules could not start theirs."""
    done = yield
    driver = item.session.stash.get(open_driver, None)
    if driver is not None and not _goes_on(item, nextitem):
        driver.close()
    return done


def _goes_on(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Whether the next test may use the open browser."""
    if following is None:
        return False
    return item.path == following.path or "playwright" in getattr(following, "fixturenames", ())


@pytest.fixture(scope="module")
def playwright(driver: Driver) -> Playwright:
    return driver.playwright()


@pytest.fixture(scope="module")
def browser(driver: Driver, playwright: Playwright) -> Browser:
    return driver.browser()


@pytest.fixture
def browser_page(browser: Browser, kept: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A blank tab; a failure leaves its trace, picture and sound in artifacts/. No script of the
    page may throw what it does not catch."""
    context = browser.new_context(viewport={"width": 1280, "height": 940})
    context.tracing.start()
    page = context.new_page()
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    yield page
    if request.node.stash.get(failed, False):
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
