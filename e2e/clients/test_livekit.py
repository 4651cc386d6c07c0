"""LiveKit's plug-ins, unmodified, with their own default voices and models."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import numpy as np
import pytest
from livekit.agents import tts
from livekit.plugins import deepgram, elevenlabs, openai

from .conftest import Address
from .listening import KEY, LONG_TEXT, SENTENCES, assert_heard

pytestmark = pytest.mark.e2e


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def deepgram_tts(
    server: Address, session: aiohttp.ClientSession
) -> AsyncIterator[deepgram.TTS]:
    async with deepgram.TTS(
        base_url=f"{server.http}/v1/speak", api_key=KEY, http_session=session
    ) as service:
        yield service


@pytest.fixture
async def elevenlabs_tts(
    server: Address, session: aiohttp.ClientSession
) -> AsyncIterator[elevenlabs.TTS]:
    async with elevenlabs.TTS(
        base_url=f"{server.http}/v1", api_key=KEY, http_session=session
    ) as service:
        yield service


async def assert_spoken(
    stream: tts.ChunkedStream | tts.SynthesizeStream,
) -> list[tts.SynthesizedAudio]:
    async with stream:
        events = [event async for event in stream]
    pcm = np.concatenate([np.frombuffer(event.frame.data, "<i2") for event in events])
    assert_heard(pcm, events[0].frame.sample_rate)
    return events


async def stream_words(service: tts.TTS) -> list[tts.SynthesizedAudio]:
    stream = service.stream()
    for word in SENTENCES.split():
        stream.push_text(f"{word} ")
    stream.end_input()
    return await assert_spoken(stream)


async def test_openai(server: Address) -> None:
    """MP3 in server-sent events, by the model's name; `test_livekit_howto.py` has it bare."""
    model = "gpt-4o-mini-tts"
    async with openai.TTS(base_url=f"{server.http}/v1", api_key=KEY, model=model) as service:
        await assert_spoken(service.synthesize(SENTENCES))


async def test_deepgram_over_http(deepgram_tts: deepgram.TTS) -> None:
    await assert_spoken(deepgram_tts.synthesize(SENTENCES))


async def test_deepgram_streams_word_by_word(deepgram_tts: deepgram.TTS) -> None:
    await stream_words(deepgram_tts)
    await stream_words(deepgram_tts)


async def test_deepgram_interrupted(deepgram_tts: deepgram.TTS) -> None:
    stream = deepgram_tts.stream()
    stream.push_text(LONG_TEXT)
    stream.flush()
    await anext(stream)
    await stream.aclose()
    await stream_words(deepgram_tts)


async def test_elevenlabs_over_http(elevenlabs_tts: elevenlabs.TTS) -> None:
    await assert_spoken(elevenlabs_tts.synthesize(SENTENCES))


async def test_elevenlabs_streams_with_words_times(elevenlabs_tts: elevenlabs.TTS) -> None:
    for _ in range(2):
        events = await stream_words(elevenlabs_tts)
        words = [
            word
            for event in events
            for word in event.frame.userdata.get("lk.timed_transcripts", [])
        ]
        assert "".join(words).split() == SENTENCES.split()
        starts = [word.start_time for word in words]
        assert starts == sorted(starts)
        seconds = sum(event.frame.duration for event in events)
        assert seconds / 2 < starts[-1] < seconds


async def test_elevenlabs_interrupted(elevenlabs_tts: elevenlabs.TTS) -> None:
    stream = elevenlabs_tts.stream()
    stream.push_text(LONG_TEXT)
    await anext(stream)
    await stream.aclose()
    await stream_words(elevenlabs_tts)


async def test_elevenlabs_lists_the_voices(elevenlabs_tts: elevenlabs.TTS) -> None:
    assert await elevenlabs_tts.list_voices()
