"""Keeps text and sound that still arrive, so that another replica can take them up again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np

from cantata.contract.data.errors import ChunkTimeout, InvalidRequest
from cantata.contract.data.transcripts import SPEECH_RATE
from cantata.contract.model.recognizer import Sound
from cantata.distributed.link.errors import LinkLost
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.messages import FrameKind, MoreSound, MoreText
from cantata.distributed.serialization import encode

FIRST_TEXT_S = 10.0
"""Limit for the first words; no replica gets the request before them."""


class ReplayableText:
    """The pieces so far. It takes a piece once the one before was sent, so it keeps no more than
    what the replica accepts as one text, and what credit allows beyond."""

    def __init__(self, pieces: AsyncIterator[str]) -> None:
        self._kept: list[str] = []
        self._ended = False
        self._sent = 0
        """Pieces that were sent on some stream."""
        self._news = asyncio.Event()
        self._consumed = asyncio.Event()
        self._taking = asyncio.create_task(self._take(pieces), name="cantata:keep-text")
        self._sending: asyncio.Task[None] | None = None

    async def wait_for_text(self, text: str) -> None:
        """Return when there is something to speak, or when nothing follows. Raises ChunkTimeout:
        nothing came in time."""
        try:
            async with asyncio.timeout(FIRST_TEXT_S):
                while not (text.strip() or any(map(str.strip, self._kept)) or self._ended):
                    self._sent = len(self._kept)
                    self._consumed.set()
                    await self._receive_next()
        except TimeoutError:
            raise ChunkTimeout(f"no text for {FIRST_TEXT_S:g} s") from None

    def send_on(self, stream: LinkStream) -> None:
        """From now on, send all of it on this stream, from its beginning. The stream before it is
        over."""
        if self._sending is not None:
            self._sending.cancel()
        self._sending = asyncio.create_task(self._send(stream), name="cantata:send-text")

    async def close(self) -> None:
        """Take and send nothing more."""
        self._taking.cancel()
        await asyncio.wait({self._taking})
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})

    async def _take(self, pieces: AsyncIterator[str]) -> None:
        async for piece in pieces:
            self._kept.append(piece)
            self._news.set()
            while self._sent < len(self._kept):
                self._consumed.clear()
                await self._consumed.wait()
        self._ended = True
        self._news.set()

    async def _send(self, stream: LinkStream) -> None:
        """Whoever reads the stream notices a lost link."""
        number = 0
        try:
            while True:
                while number < len(self._kept):
                    await stream.send(FrameKind.TEXT, *encode(MoreText(self._kept[number])))
                    number += 1
                    self._sent = max(self._sent, number)
                    self._consumed.set()
                if self._ended:
                    await stream.send(FrameKind.TEXT, *encode(MoreText("", final=True)))
                    return
                await self._receive_next()
        except LinkLost:
            return

    async def _receive_next(self) -> None:
        self._news.clear()
        await self._news.wait()


_PIECE_SAMPLES = SPEECH_RATE
"""Longest piece that is sent: 64 KB, so that other streams of the link get their turn."""


class ReplayableSound:
    """The pieces so far, at most a window of them. They leave as fast as the replica takes them.
    `max_window_s`: seconds of the longest window."""

    def __init__(self, max_window_s: float) -> None:
        self._max_window_s = max_window_s
        self._kept: list[Sound] = []
        self._length = 0
        """Samples of them."""
        self._asked = -1
        """Number of the last piece after which the words were asked for."""
        self._ended = False
        self._news = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None

    def add(self, sound: Sound, *, recognize: bool) -> None:
        """Keep a piece, and send it. Raises InvalidRequest: the window would be longer than the
        model's longest."""
        length_s = (self._length + len(sound)) / SPEECH_RATE
        if length_s > self._max_window_s:
            raise InvalidRequest(
                f"the window has {length_s:.1f} s of sound; valid: up to {self._max_window_s:g} s"
            )
        for start in range(0, max(1, len(sound)), _PIECE_SAMPLES):
            self._kept.append(sound[start : start + _PIECE_SAMPLES])
        self._length += len(sound)
        if recognize:
            self._asked = len(self._kept) - 1
        self._news.set()

    def end(self) -> None:
        """No sound follows."""
        self._ended = True
        self._news.set()

    def send_on(self, stream: LinkStream) -> None:
        """From now on, send all of it on this stream, from its beginning. The stream before it is
        over."""
        if self._sending is not None:
            self._sending.cancel()
        self._sending = asyncio.create_task(self._send(stream), name="cantata:send-sound")

    async def close(self) -> None:
        """Send nothing more."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})

    async def _send(self, stream: LinkStream) -> None:
        """Whoever reads the stream notices a lost link. What was asked for before more of the sound
        was there, and has not been sent, is not asked for any more."""
        number = 0
        try:
            while True:
                while number < len(self._kept):
                    piece = MoreSound(self._kept[number], recognize=number == self._asked)
                    number += 1
                    await stream.send(FrameKind.MORE_SOUND, *encode(piece))
                if self._ended:
                    end = MoreSound(np.zeros(0, np.float32), final=True)
                    await stream.send(FrameKind.MORE_SOUND, *encode(end))
                    return
                self._news.clear()
                await self._news.wait()
        except LinkLost:
            return
