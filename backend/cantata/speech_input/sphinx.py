"""Transcribes speech with pocketsphinx on this machine, while it is spoken."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from itertools import count

from cantata.speech_input.sphinx_frames import HEADER, SPHINX_RATE, SphinxFrameKind
from cantata.speech_input.transcription import TranscriptionFailed

_MAX_AT_A_TIME = 16
"""Most utterances in progress; each has a decoder of 12 to 40 MB."""
_FOR_ONE_WORKER = 4
"""Utterances in one worker; beyond these, another process starts."""
_MAX_WORKERS = 2
_ANSWER_S = 60.0
"""Most seconds from the end of the sound to its words."""
_PIECE_BYTES = SPHINX_RATE // 2
"""Bytes of sound sent at a time, a quarter of a second, so that utterances in progress take
turns."""


class SphinxTranscriber:
    """Owns the `sphinx_worker` processes: one, started with the first utterance and again after a
    crash, and more while many users speak at once."""

    def __init__(self) -> None:
        self._workers: list[_Worker] = []
        self._starting = asyncio.Lock()
        self._places = asyncio.Semaphore(_MAX_AT_A_TIME)
        self._ids = count()

    async def transcribe(self, sound: AsyncIterator[bytes]) -> str:
        async with self._places:
            worker = await self._running()
            utterance = next(self._ids)
            try:
                worker.take(utterance)
                async for piece in sound:
                    await worker.send(utterance, piece)
                return await worker.end(utterance)
            except ConnectionError:
                raise TranscriptionFailed("the recogniser's process has ended") from None
            except TimeoutError:
                worker.kill()
                raise TranscriptionFailed(f"no words within {_ANSWER_S:g} s") from None
            finally:
                worker.forget(utterance)

    async def close(self) -> None:
        for worker in self._workers:
            await worker.close()
        self._workers.clear()

    async def _running(self) -> _Worker:
        """The worker with the least to do; starts one if needed."""
        async with self._starting:
            for worker in [one for one in self._workers if not one.alive]:
                await worker.close()
                self._workers.remove(worker)
            least = min(self._workers, key=lambda one: one.utterances, default=None)
            enough = len(self._workers) == _MAX_WORKERS
            if least is None or (least.utterances >= _FOR_ONE_WORKER and not enough):
                least = await _Worker.start()
                self._workers.append(least)
            return least


class _Worker:
    """The process, and the utterances that wait for its answer."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._utterances: set[int] = set()
        self._started: set[int] = set()
        """Utterances in progress in the process."""
        self._reader = asyncio.create_task(self._read(), name="sphinx:read")

    @classmethod
    async def start(cls) -> _Worker:
        return cls(
            await asyncio.create_subprocess_exec(
                sys.executable, "-m", "cantata.speech_input.sphinx_worker", stdin=PIPE, stdout=PIPE
            )
        )

    @property
    def alive(self) -> bool:
        return not self._reader.done()

    @property
    def utterances(self) -> int:
        """Number of utterances in progress."""
        return len(self._utterances)

    def take(self, utterance: int) -> None:
        """Begin an utterance."""
        self._utterances.add(utterance)

    async def send(self, utterance: int, sound: bytes) -> None:
        self._started.add(utterance)
        for start in range(0, len(sound), _PIECE_BYTES):
            await self._write(utterance, SphinxFrameKind.SOUND, sound[start : start + _PIECE_BYTES])

    async def end(self, utterance: int) -> str:
        self._waiting[utterance] = asyncio.get_running_loop().create_future()
        await self._write(utterance, SphinxFrameKind.END)
        self._started.discard(utterance)
        async with asyncio.timeout(_ANSWER_S):
            return await self._waiting[utterance]

    def forget(self, utterance: int) -> None:
        """Free what is held for an utterance; an unfinished one is dropped."""
        self._utterances.discard(utterance)
        self._waiting.pop(utterance, None)
        if utterance in self._started and self.alive:
            self._started.discard(utterance)
            self._put(utterance, SphinxFrameKind.DROP)

    def kill(self) -> None:
        """Kill the process; nothing in it is worth waiting for."""
        if self._process.returncode is None:
            self._process.kill()

    async def close(self) -> None:
        """Kill the process and wait until it has ended."""
        self.kill()
        await self._process.wait()
        await self._reader

    async def _write(self, utterance: int, kind: SphinxFrameKind, sound: bytes = b"") -> None:
        if not self.alive:
            raise ConnectionResetError
        self._put(utterance, kind, sound)
        assert self._process.stdin is not None
        await self._process.stdin.drain()

    def _put(self, utterance: int, kind: SphinxFrameKind, sound: bytes = b"") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(HEADER.pack(utterance, len(sound), kind) + sound)

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            found = json.loads(line)
            waiting = self._waiting.get(found["utterance"])
            if waiting is not None and not waiting.done():
                waiting.set_result(found["text"])
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError())
