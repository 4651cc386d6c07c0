"""LiveKit's realtime model, unmodified; `test_livekit_howto.py` has a turn without a barge-in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from livekit import rtc
from livekit.agents.llm import GenerationCreatedEvent, InputSpeechStartedEvent
from livekit.plugins import openai
from livekit.plugins.openai.realtime.realtime_model import RealtimeSession
from openai.types.realtime.realtime_audio_input_turn_detection import ServerVad

from .conftest import Address
from .conversing import LONG_QUESTION, RATE, SERVER_VAD, Answer, frames, spoken
from .listening import KEY

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0


class Listener:
    """What a session tells."""

    def __init__(self, session: RealtimeSession) -> None:
        self.generations: asyncio.Queue[GenerationCreatedEvent] = asyncio.Queue()
        self.errors: list[object] = []
        self.interruptions = 0
        session.on("generation_created", self.generations.put_nowait)
        session.on("error", self.errors.append)
        session.on("input_speech_started", self._started)

    def _started(self, event: InputSpeechStartedEvent) -> None:
        self.interruptions += 1

    async def answer(self) -> Answer:
        """The next one, whole."""
        async with asyncio.timeout(PATIENCE_S):
            generation = await self.generations.get()
            answer = Answer()
            async for message in generation.message_stream:
                answer.text = "".join([str(text) async for text in message.text_stream])
                answer.sound = b"".join([bytes(f.data) async for f in message.audio_stream])
        assert self.errors == []
        return answer


@pytest.fixture
async def session(server: Address) -> AsyncIterator[RealtimeSession]:
    async with aiohttp.ClientSession() as http:
        model = openai.realtime.RealtimeModel(
            base_url=f"{server.http}/v1",
            api_key=KEY,
            turn_detection=ServerVad(**SERVER_VAD, create_response=True, interrupt_response=True),
            http_session=http,
        )
        session = model.session()
        yield session
        await session.aclose()
        await model.aclose()


def say(session: RealtimeSession, sound: bytes) -> None:
    for frame in frames(sound):
        session.push_audio(rtc.AudioFrame(frame, RATE, 1, len(frame) // 2))


async def test_a_barge_in(server: Address, session: RealtimeSession) -> None:
    listener = Listener(session)
    say(session, spoken(server, LONG_QUESTION))
    async with asyncio.timeout(PATIENCE_S):
        generation = await listener.generations.get()
        message = await anext(aiter(generation.message_stream))
        sound = aiter(message.audio_stream)
        await anext(sound)
        say(session, spoken(server))
        rest = [frame async for frame in sound]
    assert listener.interruptions == 2
    heard_s = sum(frame.duration for frame in rest)
    assert heard_s < len(spoken(server, LONG_QUESTION)) / (2 * RATE)
    (await listener.answer()).assert_understood()
