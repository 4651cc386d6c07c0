"""One server for all clients of a worker, and no access to any other host."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cantata_bench.server import free_port, running_server

# Before any client is imported: none may contact any other host.
os.environ.update(
    {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "OTEL_SDK_DISABLED": "true",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "DO_NOT_TRACK": "1",
    }
)

ROOT = Path(__file__).parents[2]
_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
LOG = ROOT / "artifacts" / f"server-clients{_WORKER}.log"
PYTHON = os.environ.get("CANTATA_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
"""Of the virtual environment that has the server."""

# A server that is running already, such as a container, is tested instead of starting one.
GIVEN_URL = os.environ.get("CANTATA_URL", "")
GIVEN_WYOMING_PORT = int(os.environ.get("CANTATA_WYOMING_PORT", "10200"))

_DEPLOYMENT = ROOT / "models" / "cantata_models" / "quartet" / "deploy.yaml"
"""Of the default voice."""
_SLOTS = 8
"""Of the default voice, which a test fills: with its 32, that took 46 s, and 35 s with these."""

_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Address:
    """Where the server is."""

    http: str
    wyoming_port: int

    @property
    def websocket(self) -> str:
        return self.http.replace("http", "ws", 1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    if GIVEN_URL:
        yield Address(GIVEN_URL.rstrip("/"), GIVEN_WYOMING_PORT)
        return
    wyoming_port = free_port()
    jobs = str(tmp_path_factory.mktemp("jobs"))
    voices = str(tmp_path_factory.mktemp("voices"))  # not the user's, which outlive the tests
    options = ["--wyoming-port", str(wyoming_port), "--jobs-dir", jobs, "--voices-dir", voices]
    options += ["--deploy", str(_write_deployment(tmp_path_factory.mktemp("deployment")))]
    with running_server(LOG, python=PYTHON, options=options) as running:
        yield Address(running.url, wyoming_port)


def _write_deployment(folder: Path) -> Path:
    given = _DEPLOYMENT.read_text(encoding="utf-8")
    written, replaced = re.subn(r"slots: \d+", f"slots: {_SLOTS}", given)
    assert replaced == 1
    path = folder / _DEPLOYMENT.name
    path.write_text(written, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def painter(server: Address) -> dict[str, Any]:
    """The server's first model that draws, as it is listed."""
    models = httpx.get(f"{server.http}/v1/models", timeout=60).json()["data"]
    for model in models:
        if model["images"] is not None:
            return dict(model)
    pytest.skip("no model of this server draws")


@pytest.fixture(autouse=True)
def no_other_host(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails the test of a client that contacts any host but the server."""
    asked: list[str] = []
    connect, getaddrinfo = socket.socket.connect, socket.getaddrinfo

    def checked_connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _LOCAL:
            asked.append(str(address[0]))
            raise ConnectionRefusedError(f"tests reach this machine alone, not {address[0]}")
        connect(self, address)

    def checked_getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        if host not in (*_LOCAL, None):
            asked.append(str(host))
            raise socket.gaierror(f"tests look up no {host}")
        return getaddrinfo(host, *rest, **options)

    monkeypatch.setattr(socket.socket, "connect", checked_connect)
    monkeypatch.setattr(socket, "getaddrinfo", checked_getaddrinfo)
    yield
    assert asked == [], "a client asked another host"
