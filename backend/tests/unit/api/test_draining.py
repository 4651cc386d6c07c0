"""SIGTERM under load: running utterances end, new requests are rejected, then the server exits."""

from __future__ import annotations

import asyncio
import signal

import httpx
import pytest
from fake_service import Behaviour, FakeService, eventually, expected_pcm
from live_server import running
from server_process import ServerProcess, server_process, until_metric
from socket_client import Client, client
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from cantata.api.settings import ConnectionSettings, ServerSettings
from cantata.audio.pcm import encode_s16le

TEXT = "A text that is under way."
PCM = encode_s16le(expected_pcm(TEXT, Behaviour()))
BODY = {"input": TEXT, "response_format": "pcm"}
SPEECH = "/v1/audio/speech"


async def until_draining(http: httpx.AsyncClient) -> httpx.Response:
    async with asyncio.timeout(30):
        while (answer := await http.get("/ready")).status_code == 200:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return answer


async def begin(c: Client, **configuration: str) -> None:
    await c.configure(**configuration)
    await c.submit(TEXT)
    await c.until("audio.start")


async def await_close(c: Client) -> tuple[list[str], int | None]:
    """Types of the messages up to the close, and its code."""
    seen = []
    try:
        while True:
            event = await c.event()
            seen.append(event["error"]["code"] if event["type"] == "error" else event["type"])
    except ConnectionClosed as closed:
        return seen, closed.rcvd.code if closed.rcvd else None


async def check_refusals(server: ServerProcess, http: httpx.AsyncClient) -> None:
    ready = await until_draining(http)
    assert (ready.status_code, ready.json()["error"]["code"]) == (503, "going_away")
    refused = await http.post(SPEECH, json=BODY)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "going_away")
    assert refused.headers["connection"] == "close"
    assert int(refused.headers["retry-after"]) >= 1
    with pytest.raises(InvalidStatus) as socket_refused:
        async with client(server.socket_url):
            pass
    assert socket_refused.value.response.status_code == 503
    assert (await http.get("/health")).json()["status"] == "stopping"


async def test_sigterm_lets_every_stream_end() -> None:
    async with (
        server_process() as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
        client(server.socket_url) as busy,
        client(server.socket_url) as midst,
        client(server.socket_url) as idle,
        connect(server.url.replace("http", "ws") + "/v1/speak") as deepgram,
    ):
        over_http = asyncio.create_task(http.post(SPEECH, json=BODY))
        await begin(busy)
        await begin(midst)
        await midst.send("input.text", text="Half a")
        await idle.configure()
        await deepgram.recv()
        await until_metric(http, 'cantata_requests_running{model="solo"} 3.0')
        server.process.send_signal(signal.SIGTERM)
        await check_refusals(server, http)
        assert await await_close(idle) == (["session.going_away", "going_away"], 1001)
        assert '"GOING_AWAY"' in str(await deepgram.recv())
        # A text whose beginning has reached the server may be sent to its end.
        await midst.submit(" sentence.")
        server.let_sound()
        assert (await over_http).content == PCM
        seen, code = await await_close(busy)
        assert (seen, code, busy.pcm) == (
            ["session.going_away", "audio.done", "input.spoken", "going_away"],
            1001,
            PCM,
        )
        seen, code = await await_close(midst)
        assert (seen.count("audio.done"), code) == (2, 1001)
        assert midst.pcm == PCM + encode_s16le(expected_pcm("Half a sentence.", Behaviour()))
        status, log = await server.ended()
        assert (status, b"Traceback" in log) == (-signal.SIGTERM, False)


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_at_once(second: signal.Signals) -> None:
    async with (
        server_process(connections={"drain_timeout_s": 3600}) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
        client(server.socket_url) as busy,
    ):
        await begin(busy)
        server.process.send_signal(signal.SIGTERM)
        await until_draining(http)
        server.process.send_signal(second)
        status, _ = await server.ended()
        assert status in (-signal.SIGTERM, -signal.SIGINT)


async def test_draining_has_a_limit() -> None:
    service = FakeService()
    service.solo.behaviour.may_sound = asyncio.Event()
    settings = ServerSettings(connections=ConnectionSettings(drain_timeout_s=0.1))
    async with running(service, settings) as server, httpx.AsyncClient(timeout=60) as http:
        await eventually(lambda: service.ready)
        asking = asyncio.create_task(http.post(server.url + SPEECH, json=BODY))
        async with client(server.socket_url) as busy:
            await begin(busy)
            await eventually(lambda: service.solo.counts.open == 2)
            server.stop()
            _, code = await await_close(busy)
            assert code == 1012
            answer = await asking
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "going_away")
    await eventually(lambda: service.solo.counts.open == 0)
