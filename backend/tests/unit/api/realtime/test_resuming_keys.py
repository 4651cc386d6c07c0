"""Who may resume a session: only the key that opened it, and only on the server that has it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running
from resuming_client import (
    KEY,
    OTHER_KEY,
    RESUMABLE,
    again,
    cut,
    last_id,
    lost,
    refusal,
    slow,  # noqa: F401
    token,
)
from server_process import server_process
from websockets.exceptions import ConnectionClosed, InvalidStatus

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.speech_input.settings import RealtimeSettings
from talking import talker


@pytest.fixture
async def guarded(others: Endpoints) -> AsyncIterator[Server]:
    """One session for each of two keys."""
    settings = ServerSettings(
        realtime=RealtimeSettings(chat=others.chat),
        security=SecuritySettings(api_keys=ApiKeys([KEY, OTHER_KEY]), max_concurrent_per_key=1),
    )
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


def bearer(key: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {key}"}}


async def test_only_the_key_that_opened_it_resumes_it(guarded: Server) -> None:
    async with talker(guarded.url, RESUMABLE, **bearer(KEY)) as c:
        cut(c)
    await lost(guarded)
    url, resume, after = guarded.url, token(c), last_id(c)
    status, error = await refusal(url, resume, after, **bearer(OTHER_KEY))
    assert (status, error["code"]) == (404, "session_not_found")
    assert (await refusal(url, resume, after))[0] == 401
    async with again(url, resume, after, **bearer(KEY)) as back:
        await back.until("session.resumed")


async def test_it_keeps_its_place_among_those_of_its_key(guarded: Server) -> None:
    async with talker(guarded.url, RESUMABLE, **bearer(KEY)) as c:
        cut(c)
    await lost(guarded)
    with pytest.raises(InvalidStatus) as refused:
        async with talker(guarded.url, **bearer(KEY)):
            pass
    assert refused.value.response.status_code == 429
    async with again(guarded.url, token(c), last_id(c), **bearer(KEY)) as back:
        await back.until("session.resumed")
    await eventually(lambda: guarded.app.state.context.resumable.count == 0)
    async with talker(guarded.url, **bearer(KEY)):
        pass


@pytest.mark.usefixtures("slow")
async def test_a_full_queue_does_not_keep_a_client_from_coming_back(server: Server) -> None:
    async with talker(server.url, RESUMABLE) as c:
        cut(c)
    for model in (server.solo, server.service.duo):
        model.behaviour.full = True
    async with again(server.url, token(c), last_id(c)) as back:
        await back.until("session.resumed")


async def test_a_client_secret_of_the_same_key_resumes_it(guarded: Server) -> None:
    async def secret(http: httpx.AsyncClient) -> str:
        answer = await http.post(f"{guarded.url}/v1/realtime/client_secrets", json={})
        return str(answer.json()["value"])

    async with httpx.AsyncClient(headers=bearer(KEY)["additional_headers"]) as http:
        first, second = await secret(http), await secret(http)
    async with talker(guarded.url, RESUMABLE, **bearer(first)) as c:
        cut(c)
    async with again(guarded.url, token(c), last_id(c), **bearer(second)) as back:
        await back.until("session.resumed")


async def test_after_the_server_was_killed_a_token_is_refused_and_another_session_begins() -> None:
    async with server_process() as first, talker(first.url, RESUMABLE) as c:
        resume, after = token(c), last_id(c)
        first.process.kill()
        await first.process.wait()
        with pytest.raises(ConnectionClosed):
            await c.event()
    async with server_process() as second:
        status, error = await refusal(second.url, resume, after)
        assert (status, error["code"]) == (404, "session_not_found")
        assert "restart" in error["message"]
        async with talker(second.url, RESUMABLE) as c:
            assert token(c) != resume


async def test_a_token_of_another_server_is_told_as_such(server: Server, guarded: Server) -> None:
    async with talker(server.url, RESUMABLE) as c:
        status, error = await refusal(guarded.url, token(c), last_id(c), **bearer(KEY))
    assert (status, error["code"]) == (404, "session_not_found")
    assert "restart" in error["message"]
    for unknown in ("x", f"{token(c)}x", "%F0%9F%8E%BB"):
        status, error = await refusal(server.url, unknown, last_id(c))
        assert (status, error["code"]) == (404, "session_not_found")
