"""An encoder in a worker thread: nothing is freed while in use, nothing is leaked."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import psutil
import pytest
from fake_service import eventually

from cantata.api.speech.response import ResponseEncoder, encoding
from cantata.audio.encoding import open_encoder
from cantata.audio.formats import output_format
from cantata.contract.service import Samples

OUTPUT = output_format("mp3", 24_000, 1, None)
LONG = np.zeros(24_000, np.float32)
SHORT = LONG[:1920]


class HeldEncoder:
    """A real encoder that a test can hold in the middle of a piece."""

    def __init__(self) -> None:
        self._encoder = open_encoder(OUTPUT)
        self.entered = threading.Event()
        self.may_go_on = threading.Event()
        self.threads: list[int] = []
        self.calls: list[str] = []

    def feed(self, samples: Samples) -> bytes:
        self.threads.append(threading.get_ident())
        self.entered.set()
        if len(samples) > len(SHORT):
            assert self.may_go_on.wait(60)
        data = self._encoder.feed(samples)
        self.calls.append("feed")
        return data

    def finish(self) -> bytes:
        return self._encoder.finish()

    def close(self) -> None:
        self._encoder.close()
        self.calls.append("close")


async def test_short_pieces_stay_in_the_loop_and_long_ones_leave_it() -> None:
    held = HeldEncoder()
    held.may_go_on.set()
    encoder = ResponseEncoder(held, OUTPUT)  # type: ignore[arg-type]
    await encoder.feed(SHORT)
    await encoder.feed(LONG)
    encoder.close()
    here = threading.get_ident()
    assert [thread == here for thread in held.threads] == [True, False]


async def test_a_cancelled_encoder_is_freed_once_its_thread_is_done() -> None:
    held = HeldEncoder()
    encoder = ResponseEncoder(held, OUTPUT)  # type: ignore[arg-type]
    feeding = asyncio.create_task(encoder.feed(LONG))
    await asyncio.to_thread(held.entered.wait, 60)
    feeding.cancel()
    await asyncio.wait([feeding])
    assert feeding.cancelled()
    encoder.close()
    assert held.calls == []
    held.may_go_on.set()
    await eventually(lambda: held.calls == ["feed", "close"])


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize(
    ("name", "encoder_kib"), [("mp3", 700), ("opus", 70), ("aac", 350), ("flac", 7_000)]
)
async def test_responses_that_are_left_cost_no_memory(name: str, encoder_kib: int) -> None:
    process = psutil.Process()
    output = output_format(name, 24_000, 2, 16_000)
    sound = np.zeros((4_000, 2), np.float32)

    async def leave_in_the_middle(times: int) -> int:
        for _ in range(times):
            async with encoding(output) as encoder:
                await encoder.feed(sound)
        return int(process.memory_info().rss)

    before = await leave_in_the_middle(30)
    # What the allocator keeps for each worker thread is worth a few encoders, a leak 600.
    leaked = 600 * encoder_kib << 10
    assert await leave_in_the_middle(600) - before < min(leaked / 2, 96 << 20)
