"""Starting the server under test, and asking it over HTTP."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

READY_DEADLINE_S = 180.0
STOP_DEADLINE_S = 30.0
POLL_S = 0.1


@dataclass(frozen=True)
class Server:
    url: str

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=10.0)

    def speech(self, **fields: object) -> httpx.Response:
        return httpx.post(f"{self.url}/v1/audio/speech", json=fields, timeout=120.0)

    def gauge(self, name: str) -> float:
        """The metric's value, summed over its labels."""
        lines = self.get("/metrics").text.splitlines()
        values = [
            line.rsplit(" ", 1)[1] for line in lines if line.startswith((name + " ", name + "{"))
        ]
        assert values, f"/metrics has no {name}"
        return sum(map(float, values))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Polls `condition`; fails with `what` when the deadline passes first."""
    give_up = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {deadline_s:g} s: {what}")
        time.sleep(POLL_S)


@contextlib.contextmanager
def running_server(port: int, log: Path) -> Iterator[Server]:
    """`cantata serve` as its own process, ready to speak; all it says goes to `log`."""
    command = [sys.executable, "-m", "cantata", "serve", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    server = Server(f"http://127.0.0.1:{port}")

    def is_ready() -> bool:
        if process.poll() is not None:
            raise AssertionError(
                f"the server ended with {process.returncode} before it was ready:\n"
                + log.read_text(errors="replace")[-4000:]
            )
        with contextlib.suppress(httpx.TransportError):
            return server.get("/ready").status_code == 200
        return False

    try:
        wait_until(is_ready, READY_DEADLINE_S, f"{server.url}/ready answers 200 (see {log})")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
