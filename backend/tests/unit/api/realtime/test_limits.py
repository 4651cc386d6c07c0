"""Who may connect, for how long, and how sessions end when the server does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from importlib.machinery import ModuleSpec

import httpx
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running
from websockets.exceptions import ConnectionClosed, InvalidStatus

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.speech_input import vad
from cantata.speech_input.settings import RealtimeSettings
from talking import Talker, speech, talker

KEY = "a-key-that-is-long-enough"


async def refusal(url: str, query: str = "", **options: object) -> tuple[int, dict[str, str]]:
    """Of the handshake: its status and error."""
    with pytest.raises(InvalidStatus) as refused:
        async with talker(url, query, **options):
            pass
    response = refused.value.response
    return response.status_code, json.loads(response.body)["error"]


async def closing(c: Talker) -> tuple[str, int]:
    """The code of the last error, and of the close."""
    try:
        while True:
            await c.event()
    except ConnectionClosed as closed:
        return c.events[-1]["error"]["code"], closed.rcvd.code if closed.rcvd else 0


async def test_models_that_are_not_served_and_a_full_queue_are_refused(server: Server) -> None:
    status, error = await refusal(server.url, "?model=nobody")
    assert (status, error["code"]) == (404, "model_not_found")
    assert "solo" in error["message"]
    for model in (server.solo, server.service.duo):
        model.behaviour.full = True
    status, error = await refusal(server.url)
    assert (status, error["code"]) == (429, "rate_limit_exceeded")


async def test_a_missing_package_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    found = vad.find_spec  # type: ignore[attr-defined]

    def find(name: str) -> ModuleSpec | None:
        return None if name == "silero_vad" else found(name)

    monkeypatch.setattr(vad, "find_spec", find)
    vad.load_weights.cache_clear()
    status, error = await refusal(server.url)
    assert (status, error["code"]) == (501, "not_installed")
    assert "silero_vad" in error["message"]
    assert "cantata[realtime]" in error["message"]


async def test_http_says_what_a_handshake_would(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers hide why a WebSocket was refused."""
    address = f"{server.url}/v1/realtime"

    async def compare(query: str) -> int:
        status, error = await refusal(server.url, query)
        answer = await client.get(address + query)
        assert (answer.status_code, answer.json()["error"]) == (status, error)
        return status

    async with httpx.AsyncClient(timeout=60) as client:
        for query in ("", "?model=solo", "?model=gpt-realtime"):
            assert (await client.get(address + query)).status_code == 204
        assert await compare("?model=nobody") == 404
        with monkeypatch.context() as patched:
            patched.setattr(vad, "find_spec", lambda name: None)
            vad.load_weights.cache_clear()
            assert await compare("") == 501
        for model in (server.solo, server.service.duo):
            model.behaviour.full = True
        assert await compare("") == 429


async def test_keys_and_their_limit_hold_here_too(others: Endpoints) -> None:
    service = FakeService()
    security = SecuritySettings(ApiKeys([KEY]), max_concurrent_per_key=1)
    async with running(service, ServerSettings(security=security)) as server:
        await eventually(lambda: service.ready)
        assert (await refusal(server.url))[0] == 401
        bearer = {"Authorization": f"Bearer {KEY}"}
        async with talker(server.url, additional_headers=bearer):
            status, error = await refusal(server.url, additional_headers=bearer)
            assert (status, error["code"]) == (429, "rate_limit_exceeded")
        browser = ["realtime", f"openai-insecure-api-key.{KEY}"]
        async with talker(server.url, subprotocols=browser) as c:
            assert c.socket.subprotocol == "realtime"


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (RealtimeSettings(idle_timeout_s=0.2), "idle_timeout"),
        (RealtimeSettings(max_session_s=0.2), "session_expired"),
    ],
)
async def test_a_session_does_not_last_for_ever(
    others: Endpoints, limits: RealtimeSettings, code: str
) -> None:
    service = FakeService()
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as c:
            assert await closing(c) == (code, 1000)


async def test_a_session_that_speaks_is_not_idle(others: Endpoints) -> None:
    service = FakeService()
    service.solo.behaviour.chunks, service.solo.behaviour.interval_s = 30, 0.02
    limits = RealtimeSettings(others.chat, idle_timeout_s=0.3)
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as c:
            await c.send("response.create")
            done = await c.until("response.done")
            assert done["response"]["status"] == "completed"
            assert await closing(c) == ("idle_timeout", 1000)


async def test_a_stopping_server_finishes_the_answer(others: Endpoints) -> None:
    service = FakeService()
    service.solo.behaviour.may_sound = asyncio.Event()
    limits = replace(RealtimeSettings(), chat=others.chat)
    async with running(service, ServerSettings(realtime=limits)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as quiet, talker(server.url) as c:
            await c.send("response.create")
            await eventually(lambda: service.solo.counts.open == 1)
            server.stop()
            assert await closing(quiet) == ("going_away", 1001)
            await c.send("response.create")
            assert (await c.error())["code"] == "going_away"
            service.solo.behaviour.may_sound.set()
            done = await c.until("response.done")
            assert done["response"]["status"] == "completed"
            assert await closing(c) == ("going_away", 1001)


async def test_a_session_is_held_with_any_model_that_can(others: Endpoints) -> None:
    service = FakeService()
    async with running(service, ServerSettings()) as server:
        await eventually(lambda: service.ready)
        status, error = await refusal(server.url, "?model=reader")
        assert (status, error["param"]) == (400, "model")
        assert error["message"].endswith("models to talk with: solo, duo, omni")
        service.omni.behaviour.full = True
        status, error = await refusal(server.url, "?model=omni")
        assert (status, error["code"]) == (429, "rate_limit_exceeded")
        async with talker(server.url, "?model=gpt-realtime") as c:
            assert c.events[0]["session"]["model"] == "solo"
        service.omni.behaviour.full = False
        service.models = {}
        for query in ("", "?model=gpt-realtime", "?model=omni"):
            async with talker(server.url, query) as c:
                assert c.events[0]["session"]["model"] == "omni"
        service.chat_models = {"reader": service.reader}
        status, error = await refusal(server.url)
        assert (status, error["code"]) == (404, "model_not_found")


async def test_a_model_that_hears_needs_no_recognizer(server: Server) -> None:
    """Others do, and so do sessions that only transcribe."""
    server.service.transcription_models = {}
    for query in ("", "?model=solo", "?intent=transcription"):
        status, error = await refusal(server.url, query)
        assert (status, error["code"]) == (501, "no_transcription_model")
        assert "--transcription-url" in error["message"]
        assert "--model" in error["message"]
    async with talker(server.url, "?model=omni") as c:
        await c.update(audio={"input": {"transcription": {}}})
        await c.say(speech())
        await c.until("response.done")
        (failed,) = (e for e in c.events if e["type"].endswith("transcription.failed"))
        assert failed["error"]["code"] == "no_transcription_model"
        await c.send("session.update", session={"type": "transcription"})
        assert (await c.error())["code"] == "no_transcription_model"


async def test_an_unknown_intent_is_refused(server: Server) -> None:
    status, error = await refusal(server.url, "?intent=translation")
    assert (status, error["param"]) == (400, "intent")
    assert "transcription" in error["message"]
