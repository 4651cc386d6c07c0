"""Keeps a text that is still arriving, so that it can be spoken again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from cantata.contract.data.errors import ChunkTimeout
from cantata.distributed.link.errors import LinkLost
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind, MoreText
from cantata.distributed.serialization import encode

FIRST_TEXT_S = 10.0
"""Limit for the first words; no replica gets the request before them."""


class ReplayableText:
    """The pieces so far. It takes a piece once the one before was sent, so it keeps no more than
    what the replica accepts as one text, and what credit allows beyond.

    Args:
        pieces: as the caller writes them.
    """

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
        """Return when there is something to speak, or when nothing follows.

        Args:
            text: that the pieces continue.

        Raises:
            ChunkTimeout: nothing came in time.
        """
        try:
            async with asyncio.timeout(FIRST_TEXT_S):
                while not (text.strip() or any(map(str.strip, self._kept)) or self._ended):
                    self._sent = len(self._kept)
                    self._consumed.set()
                    await self._next()
        except TimeoutError:
            raise ChunkTimeout(f"no text for {FIRST_TEXT_S:g} s") from None

    def send_on(self, stream: Stream) -> None:
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

    async def _send(self, stream: Stream) -> None:
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
                await self._next()
        except LinkLost:
            return

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()
