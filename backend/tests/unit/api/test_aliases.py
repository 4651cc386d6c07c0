"""Other names of served models (`--alias`), on every route that takes a model's name."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fake_service import FakeService
from live_server import Server, running
from socket_client import client

from cantata.api.settings import ServerSettings

ALIASES = {"kokoro": "duo", "tts-1": "duo", "gpt-4o": "reader", "flux": "painter", "bark": "gone"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running(FakeService(), ServerSettings(model_aliases=ALIASES)) as server:
        yield server


@pytest.mark.parametrize("name", ["kokoro", "tts-1", "duo"])
async def test_speech(server: Server, http: httpx.AsyncClient, name: str) -> None:
    """Also instead of a name that means the default model elsewhere."""
    answer = await http.post("/v1/audio/speech", json={"input": "hello", "model": name})
    assert answer.status_code == 200, answer.text
    assert server.service.duo.counts.started == 1
    async with client(server.socket_url) as c:
        assert (await c.configure(model=name))["model"] == "duo"


async def test_answers_and_pictures(http: httpx.AsyncClient) -> None:
    said = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]}
    answer = await http.post("/v1/chat/completions", json=said)
    assert answer.status_code == 200, answer.text
    picture = await http.post("/v1/images/generations", json={"prompt": "a cat", "model": "flux"})
    assert picture.status_code == 200, picture.text
    for alias in ("kokoro", "gpt-4o", "flux"):
        model = await http.get(f"/v1/models/{alias}")
        assert model.json()["id"] == ALIASES[alias]


async def test_an_alias_of_what_is_not_served(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/audio/speech", json={"input": "hello", "model": "bark"})
    assert answer.status_code == 404
    assert "solo, duo" in answer.json()["error"]["message"]
