"""300 clients, 256 descriptors: streams continue, new clients are served, the log stays small."""

from __future__ import annotations

import asyncio
import os
import resource
from urllib.parse import urlsplit

import httpx
from fake_service import Behaviour, expected_pcm
from server_process import server_process, until_metric

from cantata.audio.pcm import encode_s16le

DESCRIPTORS, CLIENTS, STREAMS = 256, 300, 20
RESERVE = 24
"""Far fewer than are kept, and more than a stage's start needs."""
TEXT = "A stream in a crowd."


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


async def test_more_clients_than_descriptors() -> None:
    async with (
        server_process(few_descriptors, connections={"head_timeout_s": 3600}) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        body = {"input": TEXT, "response_format": "pcm"}
        streams = [
            asyncio.create_task(http.post("/v1/audio/speech", json=body)) for _ in range(STREAMS)
        ]
        await until_metric(http, f'cantata_requests_running{{model="solo"}} {STREAMS}.0')
        address = urlsplit(server.url)
        crowd = []
        for _ in range(CLIENTS - STREAMS):
            crowd.append(await asyncio.open_connection(address.hostname, address.port))
            crowd[-1][1].write(b"GET / HTTP/1.1\r\n")
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as newcomer:
            assert (await newcomer.get("/health")).status_code == 200
        assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= DESCRIPTORS - RESERVE
        server.let_sound()
        expected = encode_s16le(expected_pcm(TEXT, Behaviour()))
        assert [one.content for one in await asyncio.gather(*streams)] == [expected] * STREAMS
        for _, writer in crowd:
            writer.close()
        assert (await http.post("/v1/audio/speech", json=body)).content == expected
        server.process.terminate()
        _, log = await server.ended()
        assert len(log) < 10_000, log[:2000]
