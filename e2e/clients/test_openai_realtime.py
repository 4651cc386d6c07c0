"""OpenAI's own SDK in a spoken conversation."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from .conftest import Address
from .conversing import LONG_QUESTION, SERVER_VAD, Answer, frames, spoken
from .listening import KEY

pytestmark = pytest.mark.e2e


@pytest.fixture
async def connection(server: Address) -> AsyncIterator[AsyncRealtimeConnection]:
    async with (
        openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
    ):
        yield connection


async def say(connection: AsyncRealtimeConnection, sound: bytes) -> None:
    for frame in frames(sound):
        await connection.input_audio_buffer.append(audio=base64.b64encode(frame).decode())


async def configure(connection: AsyncRealtimeConnection, **session: Any) -> None:
    audio = {
        "input": {"turn_detection": SERVER_VAD, "transcription": {"model": "whisper-1"}},
        "output": {"voice": "marin"},
    }
    await connection.session.update(session={"type": "realtime", "audio": audio, **session})


async def test_a_spoken_turn(server: Address, connection: AsyncRealtimeConnection) -> None:
    await configure(connection, instructions="Repeat.")
    await say(connection, spoken(server))
    answer, transcript = Answer(), ""
    async for event in connection:
        match event.type:
            case "error":
                raise AssertionError(event.error)
            case "conversation.item.input_audio_transcription.completed":
                transcript = event.transcript
            case "response.output_audio.delta":
                answer.sound += base64.b64decode(event.delta)
            case "response.output_audio_transcript.delta":
                answer.text += event.delta
            case "response.done":
                assert event.response.status == "completed"
                break
    assert transcript.lower().split()[:2] == ["the", "children"]
    answer.assert_understood()


async def test_a_text_turn(connection: AsyncRealtimeConnection) -> None:
    await configure(connection, output_modalities=["text"])
    item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "The sky is blue."}],
    }
    await connection.conversation.item.create(item=item)  # type: ignore[arg-type]
    await connection.response.create()
    text = ""
    async for event in connection:
        assert event.type != "error"
        if event.type == "response.output_text.delta":
            text += event.delta
        elif event.type == "response.done":
            break
    assert text == "You said: The sky is blue."


async def test_a_barge_in(server: Address, connection: AsyncRealtimeConnection) -> None:
    await configure(connection)
    await say(connection, spoken(server, LONG_QUESTION))
    answers: list[Answer] = []
    statuses: list[tuple[str | None, str | None]] = []
    async for event in connection:
        match event.type:
            case "error":
                raise AssertionError(event.error)
            case "response.created":
                answers.append(Answer())
            case "response.output_audio.delta":
                if len(answers) == 1 and not answers[0].sound:
                    await say(connection, spoken(server))
                answers[-1].sound += base64.b64decode(event.delta)
            case "response.output_audio_transcript.delta":
                answers[-1].text += event.delta
            case "response.done":
                details = event.response.status_details
                statuses.append((event.response.status, details and details.reason))
                if len(statuses) == 2:
                    break
                (item,) = event.response.output or ()
                assert item.id
                await connection.conversation.item.truncate(
                    item_id=item.id, content_index=0, audio_end_ms=0
                )
    assert statuses == [("cancelled", "turn_detected"), ("completed", None)]
    answers[1].assert_understood()


async def test_a_client_secret_opens_a_session_with_its_settings(server: Address) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        secret = await client.realtime.client_secrets.create(
            session={"type": "realtime", "instructions": "Be kind.", "output_modalities": ["text"]},
            expires_after={"anchor": "created_at", "seconds": 60},
        )
    assert secret.session.instructions == "Be kind."
    async with (
        openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=secret.value) as client,
        client.realtime.connect(model="gpt-realtime") as connection,
    ):
        event = await connection.recv()
        assert event.type == "session.created"
        assert event.session.type == "realtime"
        assert event.session.instructions == "Be kind."
        assert event.session.output_modalities == ["text"]
