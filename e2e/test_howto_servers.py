"""docs: each `cantata serve` that a page tells its reader to type starts a server, which does what
the command asks for."""

from __future__ import annotations

import json
import shlex
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue

import httpx
import pytest

from cantata_bench.server import free_port, running_server
from documented import HOWTOS, fill_in, read_block

from .conftest import GIVEN_URL
from .server import READY_DEADLINE_S, Server

pytestmark = [pytest.mark.e2e, pytest.mark.level1, pytest.mark.thorough]

KEY = "a-key-of-the-reader"
SENTENCE = "The gate is open."
PAGES = [
    ("home-assistant.md", "serve"),
    ("home-assistant.md", "serve-network"),
    ("livekit.md", "serve"),
    ("pipecat.md", "serve"),
    ("mcp.md", "serve"),
    ("monitoring.md", "serve"),
    ("open-webui.md", "serve"),
    ("open-webui.md", "serve-network"),
    ("proxies.md", "serve"),
    ("voices.md", "serve"),
    ("../migrate.md", "serve"),
]
# Pages share some.
LINES = dict.fromkeys(
    line for page, label in PAGES for line in read_block(HOWTOS / page, label).splitlines()
)


class Collector(BaseHTTPRequestHandler):
    """Takes traces."""

    traces: Queue[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.traces.put(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Queue[str]]]:
    """A port, and the paths to which traces are sent there."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")  # milliseconds
    monkeypatch.setattr(Collector, "traces", Queue(), raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever).start()
        yield collector.server_port, Collector.traces
        collector.shutdown()


@pytest.mark.skipif(bool(GIVEN_URL), reason="the server that is given was started otherwise")
@pytest.mark.parametrize("line", LINES)
def test_it_starts_and_does_what_is_asked(
    line: str, tmp_path: Path, traces: tuple[int, Queue[str]]
) -> None:
    wyoming_port, keys, requests = free_port(), tmp_path / "keys", tmp_path / "requests.jsonl"
    keys.write_text(KEY, encoding="utf-8")
    own = {
        " --port 8000": "",
        " 10200": f" {wyoming_port}",
        "file keys": f"file {keys}",
        "requests.jsonl": str(requests),
        "localhost:4318": f"127.0.0.1:{traces[0]}",
    }
    command = fill_in(line, {example: own[example] for example in own if example in line})
    assert command.startswith("cantata serve")
    options = [*shlex.split(command)[2:], "--voices-dir", str(tmp_path / "voices")]
    options += ["--jobs-dir", str(tmp_path / "jobs")]
    log = tmp_path / "log"
    with running_server(log, options=options) as running:
        server = Server(running.url, {"Authorization": f"Bearer {KEY}"})
        assert server.speech(input=SENTENCE, response_format="pcm").is_success
        if "--api-key-file" in line:
            assert Server(running.url).speech(input=SENTENCE).status_code == 401
        if "--wyoming-port" in line:
            assert describe(wyoming_port)["type"] == "info"
        if "--voice-consent" in line:
            answer = httpx.post(f"{running.url}/v1/audio/voices/consents", timeout=60)
            assert answer.json()["mode"] == options[1]
        if "--otlp-traces-endpoint" in line:
            assert traces[1].get(timeout=READY_DEADLINE_S) == "/v1/traces"
        for name in (word.partition("=")[0] for word in options if "=" in word):
            assert server.get(f"/v1/models/{name}").is_success, "an alias"
    if "--request-log" in line:
        assert [json.loads(one)["status"] for one in requests.read_text().splitlines()]
    if "--log-format json" in line:
        lines = [json.loads(one) for one in log.read_text().splitlines() if one.startswith("{")]
        assert any("completed after" in one["message"] for one in lines)


def describe(port: int) -> dict[str, object]:
    """What a Wyoming server answers to the question that Home Assistant asks first."""
    with socket.create_connection(("127.0.0.1", port), timeout=READY_DEADLINE_S) as connection:
        connection.sendall(b'{"type": "describe"}\n')
        answer = connection.makefile("rb").readline()
    return dict(json.loads(answer))
