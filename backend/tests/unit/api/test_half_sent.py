"""Requests that are never finished: their connections end in time, others are unaffected."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running
from socket_client import client

from cantata.api.settings import ConnectionSettings, ServerSettings
from cantata.audio.pcm import encode_s16le

POST = b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
GET = b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\n"
TEXT = "Others go on, whatever a stranger leaves undone."

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def limited(**limits: Any) -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, ServerSettings(connections=ConnectionSettings(**limits))) as server:
        await eventually(lambda: service.ready)
        yield server


async def opened(server: Server, data: bytes = b"") -> Connection:
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(data)
    return reader, writer


async def rest(connection: Connection) -> bytes:
    """What the server sends until it closes."""
    async with asyncio.timeout(60):
        data = await connection[0].read()
    connection[1].close()
    return data


def trickling(connection: Connection) -> asyncio.Task[None]:
    """Sends a byte now and then for as long as the server allows."""
    reader, writer = connection

    async def trickle() -> None:
        while not (writer.is_closing() or reader.at_eof()):
            writer.write(b" ")
            await asyncio.sleep(0.02)
        writer.close()

    return asyncio.create_task(trickle())


async def test_half_sent_requests_end_in_time_and_a_stream_continues() -> None:
    async with limited(head_timeout_s=0.3, body_timeout_s=0.3) as server:
        server.solo.behaviour.may_sound = asyncio.Event()
        async with client(server.socket_url) as listener:
            await listener.configure()
            await listener.submit(TEXT)
            await listener.until("audio.start")
            nothing = await opened(server)
            halves = {
                "head": await opened(server, GET),
                "upgrade": await opened(server, GET + b"connection: upgrade\r\nupgrade: webs"),
                "length": await opened(server, POST + b'content-length: 9\r\n\r\n{"input"'),
                "chunks": await opened(server, POST + b"transfer-encoding: chunked\r\n\r\n5\r\n{"),
                "no body": await opened(server, POST + b"content-length: 9\r\n\r\n"),
                "second head": await opened(server, GET + b"\r\n" + GET),
            }
            trickles = [
                trickling(await opened(server, POST + b"content-length: 99999\r\n\r\n")),
                trickling(await opened(server, GET + b"x: ")),
            ]
            assert await rest(nothing) == b""
            for name, connection in halves.items():
                answer = await rest(connection)
                assert b"HTTP/1.1 408 " in answer, name
                error = json.loads(answer[answer.rindex(b'{"error"') :])["error"]
                assert error["code"] == "request_timeout"
            async with asyncio.timeout(60):
                await asyncio.gather(*trickles)
            # The WebSocket has sent nothing meanwhile: it has a timer of its own.
            server.solo.behaviour.may_sound.set()
            await listener.until("audio.done")
            assert listener.pcm == encode_s16le(expected_pcm(TEXT, server.solo.behaviour))
        assert server.solo.counts.started == 1


async def test_a_slow_upload_and_a_slow_stream_are_not_cut() -> None:
    async with limited(head_timeout_s=0.2, body_timeout_s=0.2, body_bytes_per_s=10) as server:
        body = json.dumps({"input": "a", "response_format": "pcm", "x": " " * 1000}).encode()
        server.solo.behaviour.first_after_s = 0.6
        server.solo.behaviour.chunks = 1
        head = POST + f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        connection = await opened(server, head + body[:500])
        # Every ten bytes are a second.
        await asyncio.sleep(0.6)
        connection[1].write(body[500:])
        assert (await rest(connection)).startswith(b"HTTP/1.1 200 ")


async def test_half_sent_heads_do_not_block_new_connections() -> None:
    async with (
        limited(head_timeout_s=3600, max_connections=24) as server,
        client(server.socket_url) as listener,
        httpx.AsyncClient(timeout=60) as http,
    ):
        await listener.configure()
        halves = [await opened(server, GET) for _ in range(100)]
        await asyncio.gather(*(rest(half) for half in halves[:70]))
        for _ in range(3):
            assert (await http.get(server.url + "/v1/models")).status_code == 200
        await listener.speak("still here")
        for _, writer in halves:
            writer.close()


async def test_new_connections_wait_while_all_others_are_busy() -> None:
    async with (
        limited(max_connections=3) as server,
        httpx.AsyncClient(timeout=60) as http,
        httpx.AsyncClient(timeout=60) as late,
    ):
        server.solo.behaviour.may_sound = asyncio.Event()
        body = {"input": "a", "response_format": "pcm"}
        url = server.url + "/v1/audio/speech"
        asking = [asyncio.create_task(http.post(url, json=body)) for _ in range(3)]
        await eventually(lambda: server.solo.counts.open == 3)
        newcomer = asyncio.create_task(late.get(server.url + "/ready"))
        done, _ = await asyncio.wait([newcomer], timeout=0.3)
        assert not done
        server.solo.behaviour.may_sound.set()
        assert [answer.status_code for answer in await asyncio.gather(*asking)] == [200] * 3
        assert (await newcomer).status_code == 200


@pytest.mark.parametrize("sent", [b"NONSENSE\r\n\r\n", b"GET /\x00 HTTP/1.1\r\nhost: a\r\n\r\n"])
async def test_invalid_http_gets_the_usual_error_body(sent: bytes) -> None:
    async with limited() as server:
        answer = await rest(await opened(server, sent))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "invalid_value"
