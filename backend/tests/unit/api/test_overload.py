"""A full queue: what is rejected before any work is done for it, and at what cost."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from live_server import Server
from socket_client import client
from starlette.types import Message
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

SPEECH = "/v1/audio/speech"


def fill(server: Server, *, full: bool = True) -> None:
    server.service.solo.behaviour.full = full
    server.service.duo.behaviour.full = full


@pytest.mark.parametrize(
    "path", [SPEECH, "/v1/speak", "/v1/text-to-speech/clara", "/v1/text-to-speech/clara/stream"]
)
async def test_live_speech_is_rejected_before_its_body_is_read(
    server: Server, http: httpx.AsyncClient, path: str
) -> None:
    fill(server)
    answer = await http.post(path, content=b"no JSON")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "3"
    assert "x-request-id" in answer.headers
    assert "the queue is full" in answer.text
    metrics = (await http.get("/metrics")).text
    assert 'cantata_requests_rejected_total{code="rate_limit_exceeded",model="solo"} 1.0' in metrics
    fill(server, full=False)
    assert (await http.post(SPEECH, json={"input": "now"})).status_code == 200
    assert server.solo.counts.asked == 1


async def test_a_websocket_is_rejected_in_its_handshake_and_an_open_one_continues(
    server: Server,
) -> None:
    async with client(server.socket_url) as c:
        await c.configure()
        fill(server)
        with pytest.raises(InvalidStatus) as rejection:
            async with connect(server.socket_url):
                pass
        response = rejection.value.response
        assert response.status_code == 429
        assert response.headers["retry-after"] == "3"
        assert json.loads(response.body or b"")["error"]["code"] == "rate_limit_exceeded"
        await c.speak("hello")


async def test_what_is_no_live_speech_is_served(server: Server, http: httpx.AsyncClient) -> None:
    fill(server)
    for path in ("/health", "/ready", "/v1/models", "/v1/audio/voices", "/metrics"):
        assert (await http.get(path)).status_code == 200
    files = {"requests": [{"custom_id": "a", "input": "hello"}]}
    answer = await http.post(f"{SPEECH}/batch", json=files)
    assert answer.status_code == 200
    assert server.solo.counts.batch == 1


async def test_a_model_with_room_is_asked(server: Server, http: httpx.AsyncClient) -> None:
    server.service.duo.behaviour.full = True
    assert (await http.post(SPEECH, json={"input": "hello"})).status_code == 200


async def test_a_rejection_costs_a_part_of_what_an_empty_answer_does(server: Server) -> None:
    """By the thread's CPU time, alternating, so that other work of the machine does not count."""
    body = json.dumps({"input": "a", "response_format": "pcm"}).encode()
    server.solo.behaviour.chunk_samples = 1

    async def cpu_s(*, full: bool) -> float:
        fill(server, full=full)
        began_s = time.thread_time()
        for _ in range(20):
            status = await asked(server.app, body)
            assert status == (429 if full else 200)
        return time.thread_time() - began_s

    await cpu_s(full=True), await cpu_s(full=False)  # what is made once
    ratios = [await cpu_s(full=True) / await cpu_s(full=False) for _ in range(9)]
    assert statistics.median(ratios) < 0.5


async def asked(app: Callable[..., Any], body: bytes) -> int:
    """The status of one request sent to the app itself."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": SPEECH,
        "raw_path": SPEECH.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "scheme": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
        "state": {},
    }
    statuses: list[int] = []
    messages = receiving(body)

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, messages.__anext__, send)
    await messages.aclose()  # type: ignore[attr-defined]
    return statuses[0]


async def receiving(body: bytes) -> AsyncIterator[Message]:
    yield {"type": "http.request", "body": body, "more_body": False}
    await asyncio.Event().wait()  # it stays for the answer
