"""Decodes sound that a client sends while it is spoken: bare samples, or a file piece by piece."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import aclosing
from typing import BinaryIO, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cantata.audio.pcm import BYTES_PER_SAMPLE, to_s16
from cantata.media.containers import HEAD_BYTES, count_head_bytes
from cantata.media.sound import stream_mono
from cantata.speech_input.recordings import MAX_RECORDING_S, RecordingReader
from cantata.speech_input.sound import HEARD_RATE, Encoding, Heard, SoundInput

T = TypeVar("T")
TakeSound = Callable[[Heard], Awaitable[None]]

_BLOCK_S = 0.1
_MAX_HELD_BYTES = 1 << 20
"""Of a file that waits to be decoded; then its sender waits."""


class ArrivingSound(ABC):
    """One stream of sound. `run` passes it on, from its beginning to its end."""

    @abstractmethod
    async def feed(self, data: bytes) -> None:
        """Take the next piece, which may end anywhere. Waits while too much is not passed on."""

    @abstractmethod
    async def end(self) -> None:
        """No more follows."""

    @abstractmethod
    async def run(self) -> None:
        """Pass on what comes; returns when all of it has been.

        Raises:
            InvalidAudio: it cannot be read.
            Overloaded: too many files are arriving.
        """


class ArrivingSamples(ArrivingSound):
    """Samples without a header; `feed` passes them on itself.

    Args:
        encoding: s16le, or ITU-T G.711, of one channel.
        rate: Hz.
        channels: of s16le, one after the other in each moment; their mean is heard.
    """

    def __init__(self, encoding: Encoding, rate: int, channels: int, take: TakeSound) -> None:
        assert channels == 1 or encoding == "pcm"
        self._input = SoundInput(encoding, rate)
        self._moment_bytes = BYTES_PER_SAMPLE * channels
        self._channels = channels
        self._rest = b""
        """Bytes of a moment that is not complete."""
        self._take = take
        self._has_ended = asyncio.Event()

    async def feed(self, data: bytes) -> None:
        if self._channels > 1:
            data = self._rest + data
            whole = len(data) - len(data) % self._moment_bytes
            data, self._rest = data[:whole], data[whole:]
            moments = np.frombuffer(data, "<i2").reshape(-1, self._channels)
            data = moments.mean(axis=1).astype("<i2").tobytes()
        await self._take(self._input.feed(data))

    async def end(self) -> None:
        await self._take(self._input.end())
        self._has_ended.set()

    async def run(self) -> None:
        await self._has_ended.wait()


class ArrivingFile(ArrivingSound):
    """A file in any container, decoded in a thread of its own: FFmpeg waits for what it reads.

    Args:
        reader: of the server; gives the thread.
        param: what messages call the file.
    """

    def __init__(self, take: TakeSound, reader: RecordingReader, param: str) -> None:
        self._take, self._reader, self._param = take, reader, param
        self._pipe = _Pipe(asyncio.get_running_loop())

    async def feed(self, data: bytes) -> None:
        self._pipe.write(data)
        await self._pipe.has_room.wait()

    async def end(self) -> None:
        self._pipe.end()

    async def run(self) -> None:
        try:
            with self._reader.arriving() as thread:
                async with aclosing(self._iterate_blocks(thread)) as blocks:
                    async for block in blocks:
                        await self._take(to_s16(block))
        finally:
            self._pipe.close()

    async def _iterate_blocks(self, thread: Executor) -> AsyncGenerator[NDArray[np.float32], None]:
        head = await self._run(thread, lambda: self._pipe.peek(HEAD_BYTES))
        needed = count_head_bytes(head)
        if needed > HEAD_BYTES:
            head = await self._run(thread, lambda: self._pipe.peek(needed))
        file = cast(BinaryIO, self._pipe)
        blocks = stream_mono(
            file, HEARD_RATE, MAX_RECORDING_S, self._param, head=head, block_s=_BLOCK_S
        )
        try:
            while (block := await self._run(thread, lambda: next(blocks, None))) is not None:
                yield block
        finally:
            self._pipe.close()
            await self._run(thread, blocks.close)

    async def _run(self, thread: Executor, work: Callable[[], T]) -> T:
        """Runs in the thread. A cancelled caller waits for its end, which comes with the pipe's."""
        job = asyncio.get_running_loop().run_in_executor(thread, work)
        try:
            return await asyncio.shield(job)
        finally:
            if not job.done():
                self._pipe.close()
                await asyncio.wait([job])


class _Pipe:
    """A file that can only be read forwards, by a thread, while the event loop writes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._loop = loop
        self._held = bytearray()
        self._is_ended = False
        self._changed = threading.Condition()

    def write(self, data: bytes) -> None:
        """Add data; nobody reads what comes after the end."""
        with self._changed:
            if self._is_ended:
                return
            self._held += data
            if len(self._held) > _MAX_HELD_BYTES:
                self.has_room.clear()
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify()

    def close(self) -> None:
        """Nobody wants the rest of the file."""
        self.end()
        self.has_room.set()
        with self._changed:
            self._held.clear()

    def peek(self, size: int) -> bytes:
        """The first bytes, which stay in the pipe; fewer if the file is shorter."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._held) >= size or self._is_ended)
            return bytes(self._held[:size])

    def read(self, size: int) -> bytes:
        """What has come, at most this many bytes; waits for some. Empty: the file is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._held or self._is_ended)
            data = bytes(self._held[:size])
            del self._held[:size]
            if len(self._held) <= _MAX_HELD_BYTES:
                self._loop.call_soon_threadsafe(self.has_room.set)
            return data
