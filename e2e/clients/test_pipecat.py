"""Pipecat's services, unmodified, each in a pipeline; `test_pipecat_howto.py` has OpenAI's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.worker import PipelineParams
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService
from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService, ElevenLabsTTSService
from pipecat.tests.utils import run_test

from .conftest import Address
from .listening import KEY, SENTENCES, assert_heard, samples

pytestmark = pytest.mark.e2e

RATE = 24_000
PATIENCE_S = 60.0
"""Silence after which a service takes its text for spoken; its three seconds judge the machine."""


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def run(service: FrameProcessor, frames: Sequence[Frame]) -> Sequence[Frame]:
    down, up = await run_test(
        service,
        frames_to_send=frames,
        pipeline_params=PipelineParams(audio_out_sample_rate=RATE),
        start_timeout=60,
    )
    errors = [frame.error for frame in (*down, *up) if isinstance(frame, ErrorFrame)]
    assert errors == []
    sound = b"".join(frame.audio for frame in down if isinstance(frame, TTSAudioRawFrame))
    assert_heard(samples(sound), RATE)
    assert any(isinstance(frame, TTSStoppedFrame) for frame in down)
    return down


def answer_of_a_language_model() -> list[Frame]:
    tokens = [f"{word} " for word in SENTENCES.split()]
    texts = [LLMTextFrame(token) for token in tokens]
    return [LLMFullResponseStartFrame(), *texts, LLMFullResponseEndFrame()]


async def test_deepgram(server: Address) -> None:
    service = DeepgramTTSService(
        api_key=KEY, base_url=server.websocket, stop_frame_timeout_s=PATIENCE_S
    )
    await run(service, answer_of_a_language_model())


async def test_deepgram_over_http(server: Address, session: aiohttp.ClientSession) -> None:
    service = DeepgramHttpTTSService(
        api_key=KEY, base_url=server.http, aiohttp_session=session, sample_rate=RATE
    )
    await run(service, [TTSSpeakFrame(SENTENCES)])


def collect_words(frames: Sequence[Frame]) -> list[str]:
    texts = [frame.text for frame in frames if isinstance(frame, TTSTextFrame)]
    return " ".join(texts).split()


async def test_elevenlabs(server: Address) -> None:
    service = ElevenLabsTTSService(
        api_key=KEY,
        url=server.websocket,
        settings=ElevenLabsTTSService.Settings(voice="JBFqnCBsd6RMkjVDRZzb"),
        stop_frame_timeout_s=PATIENCE_S,
    )
    down = await run(service, answer_of_a_language_model())
    assert collect_words(down) == SENTENCES.split()


async def test_elevenlabs_over_http(server: Address, session: aiohttp.ClientSession) -> None:
    service = ElevenLabsHttpTTSService(
        api_key=KEY,
        base_url=server.http,
        aiohttp_session=session,
        settings=ElevenLabsHttpTTSService.Settings(voice="JBFqnCBsd6RMkjVDRZzb"),
    )
    down = await run(service, [TTSSpeakFrame(SENTENCES)])
    assert collect_words(down) == SENTENCES.split()
