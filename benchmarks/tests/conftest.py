"""A service without engine behind a real server, as the api's own tests have it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cantata.api.settings import ServerSettings

# What tests share stands beside them; they are not a package.
sys.path.insert(0, str(Path(__file__).parents[2] / "backend" / "tests" / "unit" / "api"))
sys.path.insert(0, str(Path(__file__).parent))

from fake_service import FakeService, eventually
from live_server import Server, running


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    service = FakeService()
    async with running(service, ServerSettings()) as server:
        await eventually(lambda: service.ready)
        yield server
