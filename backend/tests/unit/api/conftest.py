"""A fake service behind a real server on a free port, and clients for it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cantata.api.app import create_app
from cantata.api.settings import ServerSettings

# What tests share stands beside them; they are not a package.
sys.path.insert(0, str(Path(__file__).parent))

from fake_service import FakeService, eventually
from live_server import Server, running


@pytest.fixture
def settings() -> ServerSettings:
    return ServerSettings()


@pytest.fixture
async def server(settings: ServerSettings) -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server
        await eventually(lambda: service.solo.counts.open == 0)


@pytest.fixture
async def http(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    # Reading certificates, of which plain HTTP needs none, would take as long as many a test.
    async with httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as client:
        yield client


@pytest.fixture
async def asgi(settings: ServerSettings) -> AsyncIterator[httpx.AsyncClient]:
    """The app without a socket: faster, for what does not stream."""
    app = create_app(FakeService(), settings)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app):
        await app.state.context.lifecycle.settled.wait()
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client
