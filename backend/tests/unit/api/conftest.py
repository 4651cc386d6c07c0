"""A fake service behind a real server on a free port, and clients for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from cantata.api.app import create_app
from cantata.api.serve import listen, make_server, url_of
from cantata.api.settings import ServerSettings
from fastapi import FastAPI

sys.path.insert(0, str(Path(__file__).parent))

from fake_service import FakeModel, FakeService, eventually


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
    app = create_app(service, settings or ServerSettings(pages=False))
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


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings(pages=False)


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server
        await eventually(lambda: service.solo.counts.open == 0)


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=10) as client:
        yield client


@pytest.fixture
async def asgi(settings: ServerSettings) -> AsyncIterator[httpx.AsyncClient]:
    """The app without a socket: faster, for what does not stream."""
    app = create_app(FakeService(), settings)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app):
        await app.state.context.lifecycle.settled.wait()
        async with httpx.AsyncClient(transport=transport, base_url="http://cantata") as client:
            yield client


@pytest.fixture
def run_server() -> Callable[..., object]:
    return running
