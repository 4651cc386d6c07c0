"""Client secrets as older SDKs ask for them: the session is the body, and the answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import openai
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.access.api_keys import ApiKeys
from cantata.api.settings import SecuritySettings, ServerSettings
from cantata.speech_input.settings import RealtimeSettings
from talking import talker

KEY = "the-key-of-the-program"
SESSIONS, TRANSCRIPTION = "/v1/realtime/sessions", "/v1/realtime/transcription_sessions"
BETA = {"OpenAI-Beta": "realtime=v1"}


@pytest.fixture
async def guarded(others: Endpoints) -> AsyncIterator[Server]:
    settings = ServerSettings(
        realtime=RealtimeSettings(chat=others.chat),
        security=SecuritySettings(api_keys=ApiKeys([KEY])),
    )
    service = FakeService()
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        yield server


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def ask(server: Server, path: str, body: dict[str, Any], key: str = KEY) -> httpx.Response:
    async with httpx.AsyncClient(base_url=server.url, headers=bearer(key)) as http:
        return await http.post(path, json=body)


async def test_openais_sdk_makes_a_key_that_opens_such_a_session(guarded: Server) -> None:
    before, voice = time.time(), cast(Any, "ben")  # the SDK's types know OpenAI's alone
    async with openai.AsyncOpenAI(base_url=f"{guarded.url}/v1", api_key=KEY) as client:
        made = await client.beta.realtime.sessions.create(
            model="gpt-4o-realtime-preview",
            modalities=["text", "audio"],
            instructions="Be kind.",
            voice=voice,
            input_audio_format="g711_ulaw",
            turn_detection={"type": "server_vad", "silence_duration_ms": 300},
            client_secret={"expires_after": {"anchor": "created_at", "seconds": 60}},
        )
    assert made.client_secret.value.startswith("ek_")
    assert before + 59 <= made.client_secret.expires_at <= time.time() + 60
    assert (made.voice, made.instructions, made.modalities) == (
        "ben",
        "Be kind.",
        ["text", "audio"],
    )
    assert made.input_audio_format == "g711_ulaw"
    key = bearer(made.client_secret.value)
    async with talker(guarded.url, additional_headers={**key, **BETA}) as c:
        session = c.events[0]["session"]
    assert (session["voice"], session["instructions"]) == ("ben", "Be kind.")
    assert session["input_audio_format"] == "g711_ulaw"
    assert session["turn_detection"]["silence_duration_ms"] == 300


async def test_and_one_that_transcribes(guarded: Server) -> None:
    async with openai.AsyncOpenAI(base_url=f"{guarded.url}/v1", api_key=KEY) as client:
        made = await client.beta.realtime.transcription_sessions.create(
            input_audio_format="pcm16",
            input_audio_transcription={"model": "gpt-4o-transcribe", "language": "en"},
            client_secret={"expires_at": {"anchor": "created_at", "seconds": 60}},
        )
    assert made.input_audio_transcription is not None
    assert made.input_audio_transcription.language == "en"
    key = bearer(made.client_secret.value)
    async with talker(guarded.url, additional_headers=key) as c:
        session = c.events[0]["session"]
    assert session["object"] == "realtime.transcription_session"
    assert session["audio"]["input"]["transcription"]["language"] == "en"


async def test_null_is_a_value_where_the_session_has_such(guarded: Server) -> None:
    answer = await ask(guarded, SESSIONS, {"turn_detection": None})
    assert answer.json()["turn_detection"] is None
    async with talker(
        guarded.url, additional_headers=bearer(answer.json()["client_secret"]["value"])
    ) as c:
        assert c.events[0]["session"]["audio"]["input"]["turn_detection"] is None


async def test_without_a_body_there_are_defaults(guarded: Server) -> None:
    async with httpx.AsyncClient(base_url=guarded.url, headers=bearer(KEY)) as http:
        for path in (SESSIONS, TRANSCRIPTION):
            answer = await http.post(path)
            assert answer.status_code == 200, answer.text
            assert answer.json()["client_secret"]["expires_at"] > time.time() + 500


@pytest.mark.parametrize("path", [SESSIONS, TRANSCRIPTION])
async def test_it_needs_a_key_of_the_server(guarded: Server, path: str) -> None:
    made = await ask(guarded, path, {})
    for key in ("wrong-key-of-nobody", made.json()["client_secret"]["value"]):
        assert (await ask(guarded, path, {}, key)).status_code == 401


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        (SESSIONS, {"model": "nobody"}, 404, "model"),
        (SESSIONS, {"voice": "zoe"}, 400, "session.audio.output.voice"),
        (SESSIONS, {"modalities": ["smell"]}, 400, "session.output_modalities"),
        (SESSIONS, {"client_secret": {"expires_after": {"seconds": 5}}}, 400, None),
        (SESSIONS, {"client_secret": "ek_1"}, 400, "client_secret"),
        (TRANSCRIPTION, {"input_audio_format": "mp3"}, 400, "session.audio.input.format"),
    ],
)
async def test_settings_are_checked_when_it_is_made(
    guarded: Server, path: str, body: dict[str, Any], status: int, param: str | None
) -> None:
    answer = await ask(guarded, path, body)
    assert answer.status_code == status, answer.text
    assert param in (None, answer.json()["error"]["param"]), answer.text
