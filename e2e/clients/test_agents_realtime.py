"""OpenAI's Agents SDK in a spoken conversation, unmodified."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from agents.realtime import RealtimeAgent, RealtimeRunner, RealtimeSession

from .conftest import Address
from .conversing import LONG_QUESTION, SERVER_VAD, Answer, frames, spoken
from .listening import KEY

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0


@pytest.fixture
async def session(server: Address) -> AsyncIterator[RealtimeSession]:
    runner = RealtimeRunner(RealtimeAgent(name="Echo", instructions="Repeat what you hear."))
    session = await runner.run(
        model_config={
            "url": f"{server.websocket}/v1/realtime?model=gpt-realtime",
            "api_key": KEY,
            "initial_model_settings": {
                "turn_detection": {**SERVER_VAD, "interrupt_response": True}
            },
        }
    )
    async with session:
        yield session


async def say(session: RealtimeSession, sound: bytes) -> None:
    for frame in frames(sound):
        await session.send_audio(frame)


async def collect_answer(session: RealtimeSession, until: str, answer: Answer) -> Answer:
    """What is spoken up to an event of this type."""
    async with asyncio.timeout(PATIENCE_S):
        async for event in session:
            assert event.type != "error", event
            if event.type == "audio":
                answer.sound += event.audio.data
            if event.type == "raw_model_event" and event.data.type == "transcript_delta":
                answer.text += event.data.delta
            if event.type == until:
                return answer
    raise AssertionError(f"the session ended before {until}")


async def test_a_spoken_turn(server: Address, session: RealtimeSession) -> None:
    await say(session, spoken(server))
    (await collect_answer(session, "audio_end", Answer())).assert_understood()


async def test_a_barge_in(server: Address, session: RealtimeSession) -> None:
    await say(session, spoken(server, LONG_QUESTION))
    await collect_answer(session, "audio", Answer())
    await say(session, spoken(server))
    await collect_answer(session, "audio_interrupted", Answer())
    await collect_answer(session, "audio_end", Answer())
    (await collect_answer(session, "audio_end", Answer())).assert_understood()


async def test_a_written_message_is_answered_aloud(session: RealtimeSession) -> None:
    await session.send_message("The children walk home along the river after school.")
    (await collect_answer(session, "audio_end", Answer())).assert_understood()
