"""LiveKit's plug-ins have speech written down, unmodified, with their own default models."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from livekit import rtc
from livekit.agents import stt
from livekit.plugins import deepgram, openai

from .conftest import Address
from .listening import KEY, assert_words
from .speaking import RATE, frames

pytestmark = pytest.mark.e2e


@pytest.fixture
async def deepgram_stt(server: Address) -> AsyncIterator[deepgram.STT]:
    async with aiohttp.ClientSession() as session:
        service = deepgram.STT(
            base_url=f"{server.http}/v1/listen", api_key=KEY, http_session=session
        )
        async with service:
            yield service


def sound(server: Address) -> list[rtc.AudioFrame]:
    return [rtc.AudioFrame(data, RATE, 1, len(data) // 2) for data in frames(server)]


async def test_openai(server: Address) -> None:
    """With another model than `test_livekit_howto.py`."""
    model = "whisper-1"
    async with openai.STT(base_url=f"{server.http}/v1", api_key=KEY, model=model) as service:
        event = await service.recognize(sound(server))
    assert_words(event.alternatives[0].text)
    assert event.alternatives[0].language == "en"


async def test_deepgram_over_http(server: Address, deepgram_stt: deepgram.STT) -> None:
    event = await deepgram_stt.recognize(sound(server))
    (said,) = event.alternatives
    assert_words(said.text)
    assert said.words
    assert 0 <= said.start_time < said.end_time


async def test_deepgram_streams(server: Address, deepgram_stt: deepgram.STT) -> None:
    kinds, text = [], ""
    async with deepgram_stt.stream() as stream:
        for frame in sound(server):
            stream.push_frame(frame)
        stream.end_input()
        async for event in stream:
            kinds.append(event.type)
            if event.type is stt.SpeechEventType.FINAL_TRANSCRIPT:
                text += f" {event.alternatives[0].text}"
    assert_words(text)
    assert stt.SpeechEventType.START_OF_SPEECH in kinds
    assert stt.SpeechEventType.END_OF_SPEECH in kinds
