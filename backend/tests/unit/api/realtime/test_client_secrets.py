"""Client secrets: a browser's key opens sessions with its settings, and nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running
from websockets.exceptions import InvalidStatus

from calling import caller
from cantata.api.access.api_keys import ApiKeys
from cantata.api.access.client_secrets import MAX_BYTES, MAX_SESSION_BYTES, ClientSecrets
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.contract.data.errors import Overloaded
from cantata.speech_input.settings import RealtimeSettings
from talking import talker

KEY = "the-key-of-the-program"
SECRETS = "/v1/realtime/client_secrets"
SETTINGS = {
    "type": "realtime",
    "model": "solo",
    "instructions": "Be kind.",
    "audio": {"output": {"voice": "ben"}},
}


@pytest.fixture
async def guarded(others: Endpoints) -> AsyncIterator[Server]:
    settings = ServerSettings(
        realtime=RealtimeSettings(chat=others.chat),
        security=SecuritySettings(api_keys=ApiKeys([KEY]), max_concurrent_per_key=1),
    )
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


async def ask(server: Server, key: str = KEY, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, headers=bearer(key)) as http:
        return await http.post(SECRETS, json=body)


async def make(server: Server, **body: Any) -> str:
    answer = await ask(server, **body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["value"])


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_it_shows_the_session_that_it_opens(guarded: Server) -> None:
    before = time.time()
    answer = await ask(guarded, session=SETTINGS, expires_after={"seconds": 60})
    made = answer.json()
    assert made["value"].startswith("ek_")
    assert before + 59 <= made["expires_at"] <= time.time() + 60
    session = made["session"]
    assert (session["object"], session["model"]) == ("realtime.session", "solo")
    assert session["instructions"] == "Be kind."
    assert session["audio"]["output"]["voice"] == "ben"
    assert made["value"] not in str(vars(guarded.app.state.context.client_secrets))


async def test_a_socket_begins_with_its_settings(guarded: Server) -> None:
    secret = await make(guarded, session=SETTINGS)
    shown: list[dict[str, Any]] = [
        {"additional_headers": bearer(secret)},
        {"subprotocols": ["realtime", f"openai-insecure-api-key.{secret}"]},
    ]
    for options in shown:  # until it expires, as often as one likes
        async with talker(guarded.url, "?model=gpt-realtime", **options) as c:
            session = c.events[0]["session"]
            assert session["instructions"] == "Be kind."
            assert session["audio"]["output"]["voice"] == "ben"
            changed = await c.update(instructions="Be brief.")
            assert changed["instructions"] == "Be brief."


async def test_a_session_that_transcribes(guarded: Server) -> None:
    secret = await make(guarded, session={"type": "transcription"})
    async with talker(guarded.url, additional_headers=bearer(secret)) as c:
        assert c.events[0]["session"]["object"] == "realtime.transcription_session"


async def test_a_call_begins_with_its_settings_and_those_of_its_offer(guarded: Server) -> None:
    secret = await make(guarded, session=SETTINGS)
    offered = {"output": {"speed": 1.2}}
    async with caller(guarded.url, headers=bearer(secret), type="realtime", audio=offered) as call:
        session = call.events[0]["session"]
        assert session["instructions"] == "Be kind."
        assert session["audio"]["output"]["voice"] == "ben"
        assert session["audio"]["output"]["speed"] == 1.2
        async with httpx.AsyncClient(base_url=guarded.url, headers=bearer(secret)) as http:
            ended = await http.post(f"{call.location}/hangup")
        assert ended.status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/audio/speech"),
        ("POST", SECRETS),
        ("GET", "/metrics"),
        ("POST", "/v1/realtime/calls/rtc_1/hangup/more"),
        ("DELETE", "/v1/audio/voices/ben"),
    ],
)
async def test_it_opens_nothing_else(guarded: Server, method: str, path: str) -> None:
    secret = await make(guarded)
    async with httpx.AsyncClient(base_url=guarded.url, headers=bearer(secret)) as http:
        answer = await http.request(method, path, json={"input": "Hi."})
    assert answer.status_code == 401
    assert "sessions of /v1/realtime alone" in answer.json()["error"]["message"]


async def test_its_sessions_count_as_those_of_the_key(guarded: Server) -> None:
    secret = await make(guarded)
    async with talker(guarded.url, additional_headers=bearer(secret)):
        with pytest.raises(InvalidStatus) as refused:
            async with talker(guarded.url, additional_headers=bearer(KEY)):
                pass
        assert refused.value.response.status_code == 429


@pytest.mark.parametrize(
    ("session", "status", "param"),
    [
        ({"model": "nobody"}, 404, "model"),
        ({"model": 5}, 400, "session.model"),
        ({"audio": {"output": {"voice": "zoe"}}}, 400, "session.audio.output.voice"),
        ({"output_modalities": ["smell"]}, 400, "session.output_modalities"),
        ({"instructions": "x" * 70_000}, 400, "session.instructions"),
        ({"extra": "x" * MAX_SESSION_BYTES}, 400, "session"),
    ],
)
async def test_settings_are_checked_when_it_is_made(
    guarded: Server, session: dict[str, Any], status: int, param: str
) -> None:
    answer = await ask(guarded, session=session)
    assert (answer.status_code, answer.json()["error"]["param"]) == (status, param), answer.text


@pytest.mark.parametrize("seconds", [9, 7201, "60"])
async def test_it_lasts_ten_seconds_to_two_hours(guarded: Server, seconds: object) -> None:
    answer = await ask(guarded, expires_after={"anchor": "created_at", "seconds": seconds})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "expires_after.seconds"


async def test_a_server_without_keys_keeps_its_settings_too(server: Server) -> None:
    secret = await make(server, session=SETTINGS)
    async with talker(server.url, additional_headers=bearer(secret)) as c:
        assert c.events[0]["session"]["instructions"] == "Be kind."


async def test_after_it_has_expired_no_session_begins(server: Server, guarded: Server) -> None:
    for one in (server, guarded):
        secret = await make(one, session=SETTINGS, expires_after={"seconds": 10})
        one.app.state.context.client_secrets._kept.expire(time.time() + 11)
        with pytest.raises(InvalidStatus) as refused:
            async with talker(one.url, additional_headers=bearer(secret)):
                pass
        assert refused.value.response.status_code == 401
        assert b"has expired" in (refused.value.response.body or b"")


async def test_memory_is_bounded_and_free_again_after_expiry() -> None:
    now = 1000.0
    secrets = ClientSecrets(lambda: now)
    session = {"instructions": "x" * (MAX_SESSION_BYTES - 100)}
    for _ in range(MAX_BYTES // (MAX_SESSION_BYTES + 1024)):
        value, _ = secrets.issue("a", session, 60)
    with pytest.raises(Overloaded):
        secrets.issue("b", session, 60)
    assert secrets.find(value) is not None
    now += 61
    assert secrets.find(value) is None
    secrets.issue("b", session, 60)
