"""Windows that are recognized while they grow, by a model of whole windows."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.pipeline.whole_window import GrowingWindow


class CountingModel:
    """Says how many samples it was given."""

    max_window_s = 2.0

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.has_begun = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        self.lengths.append(len(sound))
        self.has_begun.set()
        await self.may_go_on.wait()
        return Transcript(str(len(sound)))


def sound(samples: int) -> Sound:
    return np.zeros(samples, np.float32)


async def read(window: GrowingWindow) -> list[str]:
    return [transcript.text async for transcript in window.partials()]


async def test_what_has_come_so_far_is_recognized_when_it_is_asked_for() -> None:
    model = CountingModel()
    window = GrowingWindow(model, TranscriptionRequest())
    reading = asyncio.create_task(read(window))
    await window.feed(sound(100))
    await window.feed(sound(100), recognize=True)
    await window.feed(sound(50))
    assert (await window.finish()).text == "250"
    assert await reading == ["200"]
    assert sorted(model.lengths) == [200, 250]


async def test_nothing_is_recognized_twice() -> None:
    model = CountingModel()
    window = GrowingWindow(model, TranscriptionRequest())
    model.may_go_on.clear()
    reading = asyncio.create_task(read(window))
    await window.feed(sound(100), recognize=True)
    await model.has_begun.wait()
    finishing = asyncio.create_task(window.finish())
    model.may_go_on.set()
    assert (await finishing).text == "100"
    assert await reading == ["100"]
    assert model.lengths == [100]


async def test_a_window_that_is_too_long_is_refused() -> None:
    window = GrowingWindow(CountingModel(), TranscriptionRequest())
    await window.feed(sound(2 * SPEECH_RATE))
    with pytest.raises(InvalidRequest, match="valid: up to 2 s"):
        await window.feed(sound(1))
