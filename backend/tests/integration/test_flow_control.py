"""Listeners that read slowly or not at all: bounded memory, no other stream affected."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx
import psutil
import pytest
import pytest_asyncio

from callers import TRANSPORTS, Caller, HttpCaller, SocketCaller
from cantata.audio.pcm import BYTES_PER_SAMPLE, encode_s16le
from cantata.contract.data.request import SpeechRequest
from tiny_talker.serving import TinyServer, tiny_server

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SENTENCE = " ".join(f"word{number}" for number in range(20)) + ". "
ENDLESS = 30 * SENTENCE
"""Forty minutes."""
BYTES_PER_S = 24_000 * BYTES_PER_SAMPLE
MAX_GROWTH_BYTES = 16 << 20
"""Growth of any process while a listener holds back forty minutes, which are 115 MB."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TinyServer]:
    folder = tmp_path_factory.mktemp("checkpoint")
    async with tiny_server(folder, slots=6) as server:
        yield server


async def until_free(server: TinyServer) -> None:
    async with asyncio.timeout(120):
        while server.model.admission.running:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await server.held() == {}


async def gauges(server: TinyServer) -> dict[str, float]:
    """What the stages hold, according to `/metrics`."""
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines)
        if name.startswith("cantata_stage_held")
    }


async def until_held_back(server: TinyServer) -> dict[str, float]:
    """The gauges, once they are constant: the talker has made its sentence, the listener's credit
    and every buffer between are used up."""
    before: dict[Any, Any] = {}
    now = await gauges(server)
    async with asyncio.timeout(60):
        while before != now or not any("queued_frames" in n and v for n, v in now.items()):
            await asyncio.sleep(0.5)
            before, now = now, await gauges(server)
    return now


def rss(server: TinyServer) -> list[int]:
    gc.collect()  # the test's own cycles are in the api's process
    pids = [os.getpid(), *(stage.pid for stage in server.model.orchestrator.stages.values())]
    return [psutil.Process(pid).memory_info().rss for pid in pids]


async def alone(server: TinyServer, text: str) -> bytes:
    async with server.model.run(SpeechRequest(text, "tiny")) as utterance:
        return b"".join([encode_s16le(chunk.samples) async for chunk in utterance])


async def spoken(server: TinyServer, text: str) -> bytes:
    body = {"input": text, "response_format": "pcm"}
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        return (await http.post("/v1/audio/speech", json=body)).content


async def read(caller: Caller, size: int) -> int:
    """Some more sound: this many bytes, or one message; 0 at its end."""
    if isinstance(caller, HttpCaller):
        return len(await caller.reader.read(size))
    assert isinstance(caller, SocketCaller)
    while isinstance(message := await caller.connection.recv(), str):
        if '"audio.done"' in message:
            return 0
    return len(message)


@pytest.mark.thorough(every=6)
@pytest.mark.parametrize("transport", ["http pcm", "http mp3", "http events", "socket"])
async def test_a_client_that_stops_reading_costs_bounded_memory_and_no_other_stream(
    server: TinyServer, transport: str
) -> None:
    texts = [f"Somebody else says {word}. And more." for word in ("one", "two", "three")]
    expected = [await alone(server, text) for text in texts]
    caller = await TRANSPORTS[transport](server, ENDLESS)
    await caller.heard()
    stalled = await until_held_back(server)
    before: list[int] = []
    for _ in range(4):
        got = await asyncio.gather(*(spoken(server, text) for text in texts))
        assert got == expected
        assert await gauges(server) == stalled
        # The first round's clients and threads leave their arenas behind, in the api's process too.
        before = before or rss(server)
    growth = [after - was for after, was in zip(rss(server), before, strict=True)]
    assert max(growth) < MAX_GROWTH_BYTES, growth
    await caller.leave()
    await until_free(server)


@contextmanager
def hasty(server: TinyServer) -> Iterator[None]:
    """A server that counts an unread connection as gone much earlier than usual."""
    usual = server.app.state.context
    settings = replace(usual.settings, stall_timeout_s=3.0)
    server.app.state.context = replace(usual, settings=settings)
    try:
        yield
    finally:
        server.app.state.context = usual


async def test_listeners_that_stall_beyond_the_limit_lose_their_places(server: TinyServer) -> None:
    names = ("http mp3", "http events", "socket", "deepgram socket", "elevenlabs socket")
    with hasty(server):
        callers = [await TRANSPORTS[name](server, ENDLESS) for name in names]
        await asyncio.gather(*(caller.heard() for caller in callers))
        await until_free(server)
    assert await spoken(server, "Next.") == await alone(server, "Next.")
    for caller in callers:
        await caller.leave()


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("transport", ["http pcm", "socket"])
async def test_a_client_at_half_speed_gets_everything_and_delays_no_other_stream(
    server: TinyServer, transport: str
) -> None:
    text = 2 * SENTENCE
    whole = await alone(server, text)
    beside = await alone(server, "Somebody else.")
    caller = await TRANSPORTS[transport](server, text)
    await caller.heard()
    loop = asyncio.get_running_loop()
    began, got = loop.time(), 0
    while loop.time() < began + 4:
        piece = await read(caller, 4_800)
        got += piece
        await asyncio.sleep(2 * piece / BYTES_PER_S)
    held = server.model.admission
    assert await spoken(server, "Somebody else.") == beside
    assert held.running == server.model.admission.running == 1
    while piece := await read(caller, 1 << 16):
        got += piece
        if isinstance(caller, HttpCaller) and caller.reader.at_eof():
            break
    assert got >= 0.9 * len(whole)
    await caller.leave()
    await until_free(server)
