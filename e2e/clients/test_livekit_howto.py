"""docs/howto/livekit.md: its agent converses, with sound from memory in the place of a room's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from livekit import rtc
from livekit.agents import Agent, utils
from livekit.agents.voice import io

from .conftest import Address
from .conversing import RATE, Answer, frames, spoken
from .listening import SENTENCES, assert_heard, assert_words
from .programs import load
from .speaking import RATE as RECORDED_RATE
from .speaking import frames as recorded

pytestmark = pytest.mark.e2e

PAGE = "livekit.md"
PATIENCE_S = 60.0


class Microphone(io.AudioInput):
    """Gives what was said, then nothing more."""

    def __init__(self, sound: bytes) -> None:
        super().__init__(label="microphone")
        self._frames = iter(frames(sound))

    async def __anext__(self) -> rtc.AudioFrame:
        frame = next(self._frames, None)
        if frame is None:
            await asyncio.Event().wait()
        assert frame is not None
        return rtc.AudioFrame(frame, RATE, 1, len(frame) // 2)


class Loudspeaker(io.AudioOutput):
    """Keeps what it should play, and has played it at once."""

    def __init__(self) -> None:
        nothing = io.AudioOutputCapabilities(pause=False)
        super().__init__(label="loudspeaker", capabilities=nothing, sample_rate=RATE)
        self.sound = b""
        self._seconds = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        self.sound += bytes(frame.data)
        self._seconds += frame.duration

    def flush(self) -> None:
        super().flush()
        if self._seconds:
            self.on_playback_finished(playback_position=self._seconds, interrupted=False)
        self._seconds = 0.0

    def clear_buffer(self) -> None:
        self._seconds = 0.0


async def test_its_agent_answers(server: Address, tmp_path: Path) -> None:
    async with utils.http_context.open():
        session = load(PAGE, "agent.py", server, tmp_path).make_session()
        texts: asyncio.Queue[str] = asyncio.Queue()
        session.on("conversation_item_added", lambda event: keep(event.item, texts))
        session.input.audio = Microphone(spoken(server))
        session.output.audio = loudspeaker = Loudspeaker()
        await session.start(Agent(instructions="Answer in one sentence."))
        async with asyncio.timeout(PATIENCE_S):
            text = await texts.get()
        Answer(loudspeaker.sound, text).assert_understood()
        await session.aclose()


def keep(item: object, texts: asyncio.Queue[str]) -> None:
    """What the agent has said."""
    if getattr(item, "role", "") == "assistant":
        texts.put_nowait(item.text_content)


async def test_its_parts_hear_and_speak(server: Address, tmp_path: Path) -> None:
    async with utils.http_context.open():
        session = load(PAGE, "parts.py", server, tmp_path).make_session()
        sound = [rtc.AudioFrame(one, RECORDED_RATE, 1, len(one) // 2) for one in recorded(server)]
        heard = await session.stt.recognize(sound)
        assert_words(heard.alternatives[0].text)
        async with session.tts.synthesize(SENTENCES) as stream:
            events = [event async for event in stream]
        pcm = np.concatenate([np.frombuffer(event.frame.data, "<i2") for event in events])
        assert_heard(pcm, events[0].frame.sample_rate)
        await session.tts.aclose()
