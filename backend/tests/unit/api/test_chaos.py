"""Many badly behaved clients at once: whatever they do, nothing stays behind."""

from __future__ import annotations

import asyncio
import random

import httpx
import pytest
from fake_service import eventually
from live_server import Server
from socket_client import client
from websockets.exceptions import ConnectionClosed

from cantata.contract.data.errors import RequestFailed


async def misuse_socket(server: Server, dice: random.Random) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity=dice.choice(["none", "sentence"]))
        for _ in range(dice.randint(1, 6)):
            await c.send("input.text", text=dice.choice(["One. Two. Three. ", "a", "x" * 300]))
            await c.send(dice.choice(["input.done", "input.cancel", "input.text", "nonsense"]))
            await asyncio.sleep(dice.uniform(0, 0.03))
            if dice.random() < 0.2:
                c.socket.transport.abort()
                return
        await c.send("session.close")
        if dice.random() < 0.7:
            while (await c.event())["type"] != "session.done":
                pass


async def misuse_http(server: Server, dice: random.Random) -> None:
    body = {"input": "hello " * dice.randint(1, 10), "response_format": "pcm"}
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
        http.stream("POST", "/v1/audio/speech", json=body) as response,
    ):
        pieces = response.aiter_raw()
        for _ in range(dice.randint(0, 20)):
            if await anext(pieces, None) is None:
                return


def socket_tasks() -> list[str]:
    """Names of the tasks that the server still runs for its sockets."""
    return [t.get_name() for t in asyncio.all_tasks() if t.get_name().startswith("ws:")]


@pytest.mark.parametrize("seed", [0, 1])
async def test_counts_return_to_zero(server: Server, seed: int) -> None:
    dice = random.Random(seed)
    how, counts = server.solo.behaviour, server.solo.counts
    how.interval_s, how.abort_s, how.capacity = 0.003, 0.01, 12
    how.fail_after, how.error = (40, RequestFailed("broke")) if seed else (None, None)
    clients = [dice.choice([misuse_socket, misuse_http])(server, dice) for _ in range(40)]
    for ended in await asyncio.gather(*clients, return_exceptions=True):
        assert ended is None or isinstance(ended, ConnectionClosed | httpx.TransportError), ended
    await eventually(lambda: counts.open == 0, timeout_s=60)
    assert counts.started == counts.finished + counts.aborted
    assert counts.abort_interrupted == 0
    await eventually(lambda: not socket_tasks(), timeout_s=60)
    how.fail_after = None
    async with client(server.socket_url) as c:
        await c.configure()
        await c.speak("still well")
