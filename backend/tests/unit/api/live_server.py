"""A real server over the fake service, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import SO_SNDBUF, SOL_SOCKET, socket

from fake_service import FakeModel, FakeService, eventually
from fastapi import FastAPI

from cantata.api.app import create_app
from cantata.api.server.listening import get_url, listen
from cantata.api.server.serve import make_server
from cantata.api.settings import ServerSettings


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    app: FastAPI
    service: FakeService
    stop: Callable[[], None]
    """As on a signal."""
    accepting: asyncio.Event
    """Set once it accepts connections: at once, or when it may share a port."""

    @property
    def solo(self) -> FakeModel:
        return self.service.solo

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws") + "/v1/audio/speech/stream"


async def until_still(count: Callable[[], int], turns: int = 60) -> None:
    """Wait until a count has not changed for this many turns of the loop.

    Turns, each of some milliseconds, and not only time: time also passes while a busy machine runs
    nothing that could change the count.
    """
    before = -1
    while before != count():
        before = count()
        for _ in range(turns):
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(
    service: FakeService,
    settings: ServerSettings | None = None,
    *,
    small_buffers: bool = False,
    listener: socket | None = None,
) -> AsyncIterator[Server]:
    """A real uvicorn server in this event loop, on a listening socket of its own or this one.

    With `small_buffers` the kernel buffers little of what a slow client leaves unread; its default
    would hold minutes of compressed sound.
    """
    app = create_app(service, settings or ServerSettings())
    listener = listener or listen("127.0.0.1", 0)
    if small_buffers:
        listener.setsockopt(SOL_SOCKET, SO_SNDBUF, 4096)
    accepting = asyncio.Event()
    server = make_server(app, accepting.set)
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    try:
        await eventually(lambda: server.started or serving.done())
        yield Server(get_url(listener), app, service, server.stop, accepting)
    finally:
        server.stop()
        await serving
        listener.close()
