"""Start a server as a person would, and wait until it can speak."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

READY_DEADLINE_S = 240.0
STOP_DEADLINE_S = 30.0
_PORTS = range(20_000, 32_000)
"""Below those that systems give to clients and to whoever asks for any: no other process takes one
of these while the server starts, or while it is away between two starts."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is ready."""

    url: str
    """Such as `http://127.0.0.1:8000`."""
    startup_s: float
    """Seconds from the spawn until `/ready` answered 200."""
    pid: int


def free_port() -> int:
    """A free TCP port on loopback, another one each time.

    Raises:
        RuntimeError: none is free.
    """
    # Not the shared generator: tests that seed it would all get the same ports.
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no TCP port from {_PORTS.start} to {_PORTS.stop - 1} is free")


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end; kill it if it has not after `STOP_DEADLINE_S`."""
    process.terminate()
    try:
        process.wait(STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def running_server(
    log: Path, *, port: int = 0, python: str = sys.executable, options: Sequence[str] = ()
) -> Iterator[RunningServer]:
    """`cantata serve` for the time of the block.

    Args:
        log: file that takes the server's output.
        port: where it listens; 0 takes a free one.
        python: of the virtual environment that has the server.
        options: more of the command's.

    Raises:
        RuntimeError: it ended or was not ready in time; the message has its last lines.
    """
    port = port or free_port()
    command = [python, "-m", "cantata", "serve", "--port", str(port), *options]
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, log, started)
        yield RunningServer(url, time.monotonic() - started, process.pid)
    finally:
        end(process)


def stage_gauges(url: str, metric: str) -> dict[str, float]:
    """One of the server's per-stage gauges, by stage."""
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    return {
        sample.labels["stage"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == metric
    }


def _wait_until_ready(
    url: str, process: subprocess.Popen[bytes], log: Path, started: float
) -> None:
    # Reading certificates anew for each question would take half a core from the server.
    with httpx.Client(verify=False, timeout=5) as http:
        while time.monotonic() - started < READY_DEADLINE_S:
            if process.poll() is not None:
                break
            try:
                if http.get(f"{url}/ready").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass  # it does not listen yet
            time.sleep(0.05)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    raise RuntimeError(f"the server was not ready (exit code {process.poll()}):\n{tail}")
