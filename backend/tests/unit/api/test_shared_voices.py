"""Two servers with one store of voices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.settings import ReferenceSettings, ServerSettings
from cantata.contract.data.capabilities import Capabilities
from sounds import wav

VOICES = "/v1/audio/voices"


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[list[Server]]:
    references = ReferenceSettings(voices_url=f"file://{tmp_path}/voices")
    found = []
    async with AsyncExitStack() as stack:
        for _ in range(2):
            service = FakeService()
            service.solo.capabilities = Capabilities(references=True)
            settings = ServerSettings(references=references)
            found.append(await stack.enter_async_context(running(service, settings)))
            await eventually(lambda service=service: service.ready)
        yield found


async def upload(server: Server, name: str) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        return await http.post(
            VOICES,
            data={"name": name, "consent": "true"},
            files={"audio_sample": ("a.wav", wav(), "audio/wav")},
        )


async def test_a_voice_that_one_server_stored_speaks_at_the_other(servers: list[Server]) -> None:
    first, second = servers
    made = await upload(first, "Ada")
    assert made.status_code == 200, made.text
    assert (await upload(second, "ada")).status_code == 409
    async with httpx.AsyncClient(base_url=second.url, timeout=60) as http:
        spoken = await http.post("/v1/audio/speech", json={"input": "hi", "voice": "ADA"})
        assert spoken.status_code == 200, spoken.text
        assert second.solo.counts.requests[-1].reference is not None
        deleted = await http.delete(
            f"{VOICES}/ada", headers={"x-deletion-token": made.json()["deletion_token"]}
        )
        assert deleted.status_code == 200, deleted.text
        assert (await http.delete(f"{VOICES}/ada")).status_code == 404
    assert (await upload(first, "ADA")).status_code == 200, "its name is free again"
