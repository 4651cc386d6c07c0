"""A real server over the fake service, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fake_service import FakeModel, FakeService, eventually
from fastapi import FastAPI

from cantata.api.app import create_app
from cantata.api.serve import listen, make_server, url_of
from cantata.api.settings import ServerSettings


@dataclass(frozen=True)
class Server:
    """A running server."""

    url: str
    app: FastAPI
    service: FakeService

    @property
    def solo(self) -> FakeModel:
        return self.service.solo

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws") + "/v1/audio/speech/stream"


@asynccontextmanager
async def running(
    service: FakeService, settings: ServerSettings | None = None
) -> AsyncIterator[Server]:
    """A real uvicorn server in this event loop."""
    app = create_app(service, settings or ServerSettings())
    listener = listen("127.0.0.1", 0)
    server = make_server(app)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await eventually(lambda: server.started or serving.done())
        yield Server(url_of(listener), app, service)
    finally:
        server.should_exit = True
        await serving
        listener.close()
