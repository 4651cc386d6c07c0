"""docs/howto/pipecat.md: its bot converses, with sound from memory in the place of a browser's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pipecat.frames.frames import (
    Frame,
    InputAudioRawFrame,
    StartFrame,
    TTSSpeakFrame,
    TTSStoppedFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.transports.base_transport import BaseTransport

from .conftest import Address
from .conversing import RATE, frames, spoken
from .listening import SENTENCES
from .programs import load
from .test_pipecat import run as assert_spoken
from .test_pipecat_realtime import Speaker
from .test_pipecat_stt import run as assert_understood

pytestmark = pytest.mark.e2e

PAGE = "pipecat.md"
LEFT = "on_client_disconnected"
PATIENCE_S = 60.0


class Microphone(FrameProcessor):
    """The beginning of the pipeline."""

    def __init__(self) -> None:
        super().__init__()
        self.started = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        await super().process_frame(frame, direction)
        await self.push_frame(frame, direction)
        if isinstance(frame, StartFrame):
            self.started.set()


class Memory(BaseTransport):
    """Sound that is not sent anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.microphone, self.speaker = Microphone(), Speaker()
        self._register_event_handler(LEFT)

    def input(self) -> FrameProcessor:
        return self.microphone

    def output(self) -> FrameProcessor:
        return self.speaker

    async def leave(self) -> None:
        """As a browser that is closed."""
        await self._call_event_handler(LEFT, None)


async def test_its_bot_answers(server: Address, tmp_path: Path) -> None:
    transport = Memory()
    running = asyncio.create_task(load(PAGE, "bot.py", server, tmp_path).converse(transport))
    async with asyncio.timeout(PATIENCE_S):
        await transport.microphone.started.wait()
        for frame in frames(spoken(server)):
            await transport.microphone.push_frame(InputAudioRawFrame(frame, RATE, 1))
        answer = await transport.speaker.until(TTSStoppedFrame)
        await transport.leave()
        await running
    answer.assert_understood()


async def test_its_parts_hear_and_speak(server: Address, tmp_path: Path) -> None:
    parts = load(PAGE, "parts.py", server, tmp_path)
    await assert_understood(server, parts.stt)
    await assert_spoken(parts.tts, [TTSSpeakFrame(SENTENCES)])
