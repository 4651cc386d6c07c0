"""A server of the tests' own, for what the shared one must not be: locked, full, faulty, frozen,
killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page

from cantata_bench.server import free_port, running_server
from cantata_models.solo.plugin import PLUGIN

from .server import Server
from .speech_page import SpeechPage

KEY = "a-key-for-the-tests"
AUTHORIZATION = {"Authorization": f"Bearer {KEY}"}
PLUGINS = Path(__file__).parent / "plugins"
FAULT_VARIABLE = "CANTATA_TEST_FAULT"


@dataclass(frozen=True)
class Apart:
    """A page on an origin of its own."""

    port: int

    @property
    def allowed(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def stranger(self) -> str:
        """The same page under an origin that the server does not know."""
        return f"http://localhost:{self.port}"


class OwnServer:
    """A server that requires a key, allows pages of one other origin, and has one place. Its model
    is solo with faults that a test may order (`plugins/faulty`). A test may freeze it, kill it and
    start it again on the same port.

    Args:
        folder: for its files.
        logs: where its output goes, by start.
    """

    def __init__(self, folder: Path, logs: Path) -> None:
        self.apart = Apart(free_port())
        self._port = free_port()
        self._logs = logs
        self._running = ExitStack()
        self._pid = 0
        self._starts = 0
        self._fault_file = folder / "fault"
        self.order("")
        keys, deploy = folder / "keys", folder / "deploy.yaml"
        keys.write_text(KEY, encoding="utf-8")
        deployment = yaml.safe_load(PLUGIN.deployment.read_text(encoding="utf-8"))
        for stage in deployment["stages"].values():
            stage["slots"] = 1
        deploy.write_text(yaml.safe_dump(deployment), encoding="utf-8")
        self._options = ["--api-key-file", str(keys), "--allow-origin", self.apart.allowed]
        self._options += ["--voices-dir", str(folder / "voices"), "--deploy", str(deploy)]
        self._options += ["--model", "faulty"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def server(self) -> Server:
        """An HTTP client with the key."""
        return Server(self.url, AUTHORIZATION)

    def open(self, speech_page: SpeechPage) -> None:
        """Opens its page and enters the key."""
        speech_page.page.goto(self.url)
        enter_key(speech_page.page, KEY)
        speech_page.wait_until_ready()

    def order(self, fault: str) -> None:
        """The fault of the next utterance; empty: none."""
        self._fault_file.write_text(fault, encoding="utf-8")

    def start(self) -> None:
        self._starts += 1
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        log = self._logs / f"server-own-{self._starts}-{worker}.log"
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("PYTHONPATH", str(PLUGINS), prepend=os.pathsep)
            environment.setenv(FAULT_VARIABLE, str(self._fault_file))
            starting = running_server(log, port=self._port, options=self._options)
            self._pid = self._running.enter_context(starting).pid

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        self._running.close()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the server inside the block: its sockets stay open and nothing answers."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)


def enter_key(page: Page, key: str) -> None:
    page.get_by_role("dialog", name="API key").get_by_label("Key").fill(key)
    page.keyboard.press("Enter")
