"""Reads recordings of any length: decoded block by block, cut where nobody speaks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from cantata.contract.data.errors import InvalidAudio, Overloaded
from cantata.contract.model.recognizer import Sound
from cantata.media.sound import stream_mono
from cantata.speech_input.segmenter import (
    SegmenterOptions,
    SpeechSegment,
    SpeechSegmenter,
)
from cantata.speech_input.sound import HEARD_RATE
from cantata.speech_input.vad import SileroJudge

T = TypeVar("T")

MAX_RECORDING_S = 4 * 3600.0
"""Seconds of the longest recording."""
MAX_ARRIVING = 64
"""Files that arrive while they are read, at a time: each has a thread."""
_NICENESS = 5
_RETRY_S = 5.0


@dataclass(slots=True)
class RecordingProgress:
    seconds: float = 0.0
    """Decoded so far; at the end, its length."""


class RecordingReader:
    """Of one server. All recordings share a thread, which yields the CPU to live streams: reading
    takes a tenth of what recognition takes."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(
            1, "recordings", initializer=os.nice, initargs=(_NICENESS,)
        )
        self._arriving = 0

    def close(self) -> None:
        """End the thread."""
        self._threads.shutdown(cancel_futures=True)

    @contextmanager
    def arriving(self) -> Iterator[Executor]:
        """A thread for the time of the block, for a file whose end has not come yet. Raises
        Overloaded: too many files are arriving."""
        if self._arriving >= MAX_ARRIVING:
            raise Overloaded(
                f"{MAX_ARRIVING} sound files are arriving already; send bare samples, or retry",
                _RETRY_S,
            )
        thread = ThreadPoolExecutor(1, "arriving")
        self._arriving += 1
        try:
            yield thread
        finally:
            self._arriving -= 1
            thread.shutdown(wait=False)

    async def read(
        self, file: BinaryIO, options: SegmenterOptions, progress: RecordingProgress, param: str
    ) -> AsyncGenerator[SpeechSegment, None]:
        """The segments of a recording, in order.

        Args:
            file: open at its beginning; it is not used any more once the generator has ended.
            param: the field that it came in, for error messages.

        Raises:
            InvalidAudio: the file cannot be read, is too long, or has no sound.
        """
        blocks = stream_mono(file, HEARD_RATE, MAX_RECORDING_S, param)
        segmenter = await self._run(lambda: SpeechSegmenter(SileroJudge(), options))
        try:
            while True:
                block, found = await self._run(lambda: _advance(blocks, segmenter))
                if block is None:
                    break
                progress.seconds += len(block) / HEARD_RATE
                for segment in found:
                    yield segment
        finally:
            await self._run(blocks.close)
        if not progress.seconds:
            raise InvalidAudio(f"{param} contains no sound: it is 0 s long", param)
        for segment in await self._run(segmenter.end):
            yield segment

    async def _run(self, work: Callable[[], T]) -> T:
        """Runs in the thread. A cancelled caller waits for the end, because the thread uses the
        file."""
        job = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(job)
        finally:
            if not job.done():
                await asyncio.wait([job])


def _advance(
    blocks: Iterator[Sound], segmenter: SpeechSegmenter
) -> tuple[Sound | None, list[SpeechSegment]]:
    block = next(blocks, None)
    return block, [] if block is None else segmenter.feed(block)
