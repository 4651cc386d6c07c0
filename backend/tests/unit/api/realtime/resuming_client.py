"""Clients whose connections are lost, and that come back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from endpoints import Endpoints
from fake_service import eventually
from live_server import Server
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from talking import Event, Talker

LONG = "An answer that is long enough to lose its listener in the middle, and to find it again."
RESUMABLE = "?resumable=true"
KEY, OTHER_KEY = "the-key-of-one-program", "the-key-of-another-one"


@pytest.fixture
def slow(server: Server, others: Endpoints) -> None:
    """Answers during which connections can be lost."""
    server.solo.behaviour.interval_s = 0.01
    others.deltas = [LONG]


def token(c: Talker) -> str:
    created = c.events[0]
    assert created["type"] == "session.created"
    return str(created["resume"]["token"])


def last_id(c: Talker) -> str:
    return str(c.events[-1]["event_id"])


def address(url: str, resume: str, after: str) -> str:
    return f"{url.replace('http', 'ws', 1)}/v1/realtime?resume={resume}&after={after}"


@asynccontextmanager
async def again(
    url: str, resume: str, after: str, events: list[Event] | None = None, **options: Any
) -> AsyncIterator[Talker]:
    """The next connection of a session; `events` came before."""
    where = address(url, resume, after)
    async with connect(where, max_size=None, close_timeout=0.5, **options) as socket:
        one = Talker(socket)
        one.events = list(events or ())
        yield one


async def refusal(url: str, resume: str, after: str, **options: Any) -> tuple[int, Event]:
    """Of a handshake, which HTTP explains in the same words."""
    with pytest.raises(InvalidStatus) as refused:
        async with again(url, resume, after, **options):
            pass
    response = refused.value.response
    body = json.loads(response.body or b"")
    async with httpx.AsyncClient(headers=options.get("additional_headers")) as http:
        asked = await http.get(address(url, resume, after).replace("ws", "http", 1))
    assert (asked.status_code, asked.json()) == (response.status_code, body)
    return response.status_code, body["error"]


def cut(c: Talker) -> None:
    """Abort the TCP connection."""
    c.socket.transport.abort()


async def closing(c: Talker) -> tuple[int, str]:
    """Code and reason with which the server closes, after all its events."""
    with suppress(ConnectionClosed):
        while True:
            await c.event()
    code, reason = c.socket.close_code, c.socket.close_reason
    assert code is not None
    assert reason is not None
    return code, reason


async def lost(server: Server, count: int = 1) -> None:
    """Wait until the server has noticed."""
    sessions = server.app.state.context.resumable._open
    await eventually(lambda: sum(one.socket.lost for one in sessions.values()) == count)


def repeatable(events: list[Event]) -> list[Event]:
    """Events of an answer without what differs between two: ids, and how texts are cut."""
    kept = [e for e in events if e["type"] not in ("session.resumed", "session.created")]
    return [{k: e[k] for k in ("type", "delta", "transcript") if k in e} for e in kept]


async def ask(c: Talker) -> None:
    await c.write("Go on.")
    await c.send("response.create")
