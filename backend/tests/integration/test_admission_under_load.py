"""More callers than a slow stage can serve: what is admitted, what waits, what is rejected."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest
import pytest_asyncio

from cantata.audio.pcm import encode_s16le
from cantata.contract.data.request import SpeechRequest
from tiny_talker.plugin import SLOW
from tiny_talker.serving import TinyServer, tiny_server

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 8
MAX_PLACES = 3
"""Listeners: each costs 20 ms of a frame's usable 64."""
SPEECH = "/v1/audio/speech"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TinyServer]:
    folder = tmp_path_factory.mktemp("checkpoint")
    async with tiny_server(folder, slots=SLOTS, pipeline=SLOW) as server:
        yield server


@pytest.fixture
async def http(server: TinyServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        yield client


async def until(condition: object) -> None:
    assert callable(condition)
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def body(text: str) -> dict[str, str]:
    return {"input": text, "response_format": "pcm"}


async def test_places_are_what_the_slowest_stage_keeps_up_with(server: TinyServer) -> None:
    """Known from the warm-up on, although the stages have slots for more."""
    assert server.model.orchestrator.slots == SLOTS
    assert 1 <= server.model.admission.places <= MAX_PLACES


async def test_requests_in_a_crowd_are_served_whole_or_rejected_with_a_retry_time(
    server: TinyServer, http: httpx.AsyncClient
) -> None:
    async with server.model.run(SpeechRequest("One two.", "tiny")) as utterance:
        expected = b"".join([encode_s16le(chunk.samples) async for chunk in utterance])
    refused = Counter(server.model.admission.refused)
    answers = await asyncio.gather(*(http.post(SPEECH, json=body("One two.")) for _ in range(24)))
    assert {answer.status_code for answer in answers} == {200, 429}
    served = [answer for answer in answers if answer.status_code == 200]
    assert len(served) >= SLOTS
    assert {answer.content for answer in served} == {expected}
    for answer in answers:
        if answer.status_code == 429:
            assert 1 <= int(answer.headers["retry-after"]) <= 30
            assert answer.json()["error"]["code"] == "rate_limit_exceeded"
    await until(lambda: not server.model.admission.running)
    told = Counter(server.model.admission.refused) - refused
    assert told.total() == len(answers) - len(served) >= 24 - SLOTS - 2 * MAX_PLACES
    metrics = (await http.get("/metrics")).text
    for line in (
        f'cantata_admission_places{{model="tiny"}} {server.model.admission.places:.1f}',
        'cantata_admission_running{model="tiny"} 0.0',
        'cantata_requests_waiting{kind="batch",model="tiny"} 0.0',
        'cantata_admission_refused_total{model="tiny",reason="queue_full"}',
    ):
        assert line in metrics
    assert await server.held() == {}


async def test_a_live_request_passes_the_files_that_came_before_it(
    server: TinyServer, http: httpx.AsyncClient
) -> None:
    """All places are held; one becomes free for the request that waits. The others follow, since a
    busy machine may then have fewer places than they hold."""
    order: list[str] = []

    async def ask(name: str, path: str, content: object) -> None:
        answer = await http.post(path, json=content)
        assert answer.status_code == 200, answer.text
        order.append(name)

    files = {"requests": [{"custom_id": "file", "input": "One two three four five."}]}
    async with asyncio.TaskGroup() as group:
        async with AsyncExitStack() as others:
            first = server.model.run(SpeechRequest("word.", "tiny"))
            await first.__aenter__()
            while server.model.admission.running < server.model.admission.places:
                other = server.model.run(SpeechRequest("word.", "tiny"))
                await others.enter_async_context(other)
            group.create_task(ask("file", f"{SPEECH}/batch", files))
            await until(lambda: server.model.admission.waiting_batch == 1)
            group.create_task(ask("live", SPEECH, body("One.")))
            await until(lambda: server.model.admission.waiting == 1)
            await first.__aexit__(None, None, None)
            await until(lambda: bool(order))
        await until(lambda: len(order) == 2)
    assert order == ["live", "file"]
    assert await server.held() == {}
