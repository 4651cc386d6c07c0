"""Pipecat's services have speech written down, unmodified, each in a pipeline; OpenAI's in
`test_pipecat_howto.py`."""

from __future__ import annotations

import asyncio

import pytest
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    Frame,
    InputAudioRawFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.workers.runner import WorkerRunner

from .conftest import Address
from .listening import KEY, SENTENCES, assert_words
from .speaking import RATE, frames

pytestmark = pytest.mark.e2e

PATIENCE_S = 60.0


class Reader(FrameProcessor):
    """The end of the pipeline, where a language model would read the words."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.has_all = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        assert not isinstance(frame, ErrorFrame), frame.error
        if isinstance(frame, TranscriptionFrame):
            self.text = f"{self.text} {frame.text}"
            if len(self.text.split()) >= len(SENTENCES.split()):
                self.has_all.set()
        await self.push_frame(frame, direction)


async def run(server: Address, service: FrameProcessor) -> None:
    """Speak, as a transport with a detector of voices would pass it on."""
    reader = Reader()
    params = PipelineParams(audio_in_sample_rate=RATE)
    worker = PipelineWorker(
        Pipeline([service, reader]), params=params, cancel_on_idle_timeout=False
    )
    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    running = asyncio.create_task(runner.run())
    sound = [InputAudioRawFrame(frame, RATE, 1) for frame in frames(server)]
    await worker.queue_frames(
        [VADUserStartedSpeakingFrame(), *sound, VADUserStoppedSpeakingFrame()]
    )
    try:
        async with asyncio.timeout(PATIENCE_S):
            await reader.has_all.wait()
    finally:
        await worker.queue_frame(EndFrame())
        async with asyncio.timeout(PATIENCE_S):
            await running
    assert_words(reader.text)


async def test_deepgram(server: Address) -> None:
    await run(server, DeepgramSTTService(api_key=KEY, base_url=server.websocket))
