"""pocketsphinx in its own process: words, several utterances at a time, faults."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile
import soxr

from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.sphinx import SphinxTranscriber
from cantata.speech_input.transcription import TranscriptionFailed

VOICES = Path(__file__).parents[4] / "docs" / "voice"
SAID = "children"
"""A word of the sentence in each of these recordings."""


def recording(voice: str) -> bytes:
    sound, rate = soundfile.read(VOICES / f"{voice}.mp3", dtype="float32")
    narrow = soxr.resample(sound, rate, HEARD_RATE)
    padded = np.concatenate([np.zeros(4000), narrow, np.zeros(6000)])
    return bytes((padded * 32767).astype("<i2").tobytes())


async def pieces(sound: bytes, size: int = 3200) -> AsyncIterator[bytes]:
    for start in range(0, len(sound), size):
        await asyncio.sleep(0)
        yield sound[start : start + size]


@pytest.fixture
async def transcriber() -> AsyncIterator[SphinxTranscriber]:
    one = SphinxTranscriber()
    yield one
    await one.close()
    assert workers() == []


def workers() -> list[psutil.Process]:
    children = psutil.Process().children()
    return [one for one in children if "cantata.speech_input.sphinx_worker" in one.cmdline()]


async def test_utterances_at_a_time_keep_apart(transcriber: SphinxTranscriber) -> None:
    voices = ("clara", "ben", "clara")
    sounds = [recording(voice) for voice in voices]
    alone = [await transcriber.transcribe(pieces(sound)) for sound in sounds]
    together = await asyncio.gather(*(transcriber.transcribe(pieces(s)) for s in sounds))
    assert together == alone
    assert all(SAID in text.split() for text in alone), alone
    assert alone[0] == alone[2]
    assert await transcriber.transcribe(pieces(bytes(16000))) == ""
    assert await transcriber.transcribe(pieces(b"")) == ""


async def test_a_cancelled_one_leaves_nothing_behind(transcriber: SphinxTranscriber) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield recording("ben")
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(transcriber.transcribe(endless()))
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert SAID in await transcriber.transcribe(pieces(recording("clara")))


async def test_a_dead_process_fails_its_utterances_and_is_replaced(
    transcriber: SphinxTranscriber,
) -> None:
    begun = asyncio.Event()

    async def interrupted() -> AsyncIterator[bytes]:
        yield recording("ben")
        begun.set()
        os.kill(workers()[0].pid, signal.SIGKILL)

    with pytest.raises(TranscriptionFailed):
        await transcriber.transcribe(interrupted())
    assert begun.is_set()
    assert SAID in await transcriber.transcribe(pieces(recording("clara")))


async def test_many_at_a_time_share_two_processes(transcriber: SphinxTranscriber) -> None:
    sound = recording("clara")
    texts = await asyncio.gather(*(transcriber.transcribe(pieces(sound)) for _ in range(6)))
    assert len(set(texts)) == 1
    assert SAID in texts[0]
    assert len(workers()) == 2
