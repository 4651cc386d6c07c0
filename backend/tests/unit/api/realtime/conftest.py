"""A server whose conversations are answered by an endpoint that tests control."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from endpoints import Endpoints, endpoints
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.speech_input.settings import RealtimeSettings


@pytest.fixture
async def others() -> AsyncIterator[Endpoints]:
    async with endpoints() as one:
        yield one


@pytest.fixture
def limits() -> RealtimeSettings:
    return RealtimeSettings()


@pytest.fixture
async def server(others: Endpoints, limits: RealtimeSettings) -> AsyncIterator[Server]:
    """A fake recognizer, the endpoint's answers."""
    service = FakeService()
    settings = ServerSettings(realtime=replace(limits, chat=others.chat))
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server
        await eventually(lambda: service.solo.counts.open == 0 and others.open == 0)
        await eventually(lambda: service.ears.counts.open == 0)
