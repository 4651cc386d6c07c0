"""Pipecat's realtime service, unmodified, in a pipeline; a turn without a barge-in is in
`test_pipecat_howto.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    InterruptionFrame,
    LLMFullResponseStartFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.llm_service import FunctionCallParams
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService
from pipecat.workers.runner import WorkerRunner

from .conftest import Address
from .conversing import LONG_QUESTION, RATE, Answer, frames, spoken
from .listening import KEY

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0
ToolHandler = Callable[[FunctionCallParams], Awaitable[None]]


class Speaker(FrameProcessor):
    """The end of the pipeline, where a transport would play the sound."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        self.frames.put_nowait(frame)
        await self.push_frame(frame, direction)

    async def until(self, kind: type[Frame]) -> Answer:
        """What the latest answer has said up to a frame of this type.

        What is left of an interrupted answer comes without a frame that ends it.
        """
        answer = Answer()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.frames.get()
                assert not isinstance(frame, ErrorFrame), frame.error
                if isinstance(frame, LLMFullResponseStartFrame):
                    answer = Answer()
                if isinstance(frame, TTSAudioRawFrame):
                    assert frame.sample_rate == RATE
                    answer.sound += frame.audio
                if isinstance(frame, TTSTextFrame):
                    answer.text += frame.text
                if isinstance(frame, kind):
                    return answer


@asynccontextmanager
async def conversation(
    server: Address, tool: dict[str, Any] | None = None, call: ToolHandler | None = None
) -> AsyncIterator[tuple[PipelineWorker, Speaker]]:
    """A running pipeline; `call` is the tool's function."""
    detection = events.TurnDetection(type="server_vad", silence_duration_ms=500)
    properties = events.SessionProperties(
        audio=events.AudioConfiguration(
            input=events.AudioInput(
                transcription=events.InputAudioTranscription(), turn_detection=detection
            ),
            output=events.AudioOutput(voice="alloy"),
        ),
        tools=[tool] if tool else None,
    )
    service = OpenAIRealtimeLLMService(
        api_key=KEY,
        base_url=f"{server.websocket}/v1/realtime",
        settings=OpenAIRealtimeLLMService.Settings(session_properties=properties),
    )
    if tool:
        service.register_function(tool["name"], call)
    ready = asyncio.Event()
    speaker = Speaker()
    user, assistant = LLMContextAggregatorPair(LLMContext())
    around = [user, service, speaker, assistant] if tool else [service, speaker]
    worker = PipelineWorker(Pipeline(around), cancel_on_idle_timeout=False)

    @worker.event_handler("on_pipeline_started")
    async def on_pipeline_started(worker: PipelineWorker, frame: Frame) -> None:
        ready.set()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    async with asyncio.timeout(PATIENCE_S):
        await ready.wait()
    try:
        yield worker, speaker
    finally:
        await worker.queue_frame(EndFrame())
        async with asyncio.timeout(PATIENCE_S):
            await running


async def say(worker: PipelineWorker, sound: bytes) -> None:
    await worker.queue_frames([InputAudioRawFrame(frame, RATE, 1) for frame in frames(sound)])


async def test_a_barge_in(server: Address) -> None:
    async with conversation(server) as (worker, speaker):
        await say(worker, spoken(server, LONG_QUESTION))
        await speaker.until(TTSAudioRawFrame)
        await say(worker, spoken(server))
        # What a transport does when it hears that the user speaks: it also truncates.
        await worker.queue_frame(InterruptionFrame())
        # What is left of the first answer may come as one of its own.
        while "children" not in (answer := await speaker.until(TTSStoppedFrame)).text:
            pass
        answer.assert_understood()
