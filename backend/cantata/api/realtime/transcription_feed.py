"""One utterance of the user: its sound, and its words while they are being transcribed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import numpy as np

from cantata.api.context import ApiContext
from cantata.api.realtime.server_events import new_id
from cantata.contract.data.errors import CantataError
from cantata.speech_input.sound import Heard

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Starts a task of the connection."""


class TranscriptionFeed:
    """One utterance, on its way to the model that hears it and to the recogniser.

    Args:
        keeps_sound: whether anybody follows it.
    """

    def __init__(self, *, keeps_sound: bool) -> None:
        self.item_id = new_id("item")
        self.words: asyncio.Future[str] | None = None
        """None: nothing is transcribed."""
        self.bytes = 0
        """Bytes of its sound."""
        self._kept = bytearray() if keeps_sound else None
        # Bounded by the longest turn.
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    @property
    def sound(self) -> Heard | None:
        """All of its sound, once it has ended; None if it is not kept."""
        return None if self._kept is None else np.frombuffer(bytes(self._kept), np.int16)

    def find_words(self, context: ApiContext, spawn: Spawn) -> None:
        """Pass its sound on to the recogniser."""
        self.words = asyncio.get_running_loop().create_future()
        self.words.add_done_callback(_read)
        self._task = spawn(self._transcribe(context, self.words))

    def feed(self, sound: bytes) -> None:
        """Add sound: s16le at `HEARD_RATE`."""
        if not sound:
            return
        self.bytes += len(sound)
        if self._kept is not None:
            self._kept += sound
        if self.words is not None:
            self._waiting.put_nowait(sound)

    def end(self) -> None:
        """Mark the utterance as complete."""
        self._waiting.put_nowait(None)

    def drop(self) -> None:
        """Stop transcribing it: nobody needs its words."""
        if self._task is not None:
            self._task.cancel()

    async def _transcribe(self, context: ApiContext, found: asyncio.Future[str]) -> None:
        try:
            with context.metrics.conversations.transcriptions.track_inprogress():
                words = await context.cascade.transcriber.transcribe(self._pieces())
        except CantataError as error:
            found.set_exception(error)
        else:
            found.set_result(words)
        finally:
            found.cancel()

    async def _pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._waiting.get()) is not None:
            yield piece


def _read(words: asyncio.Future[str]) -> None:
    """Read the result, so that a failure that nobody waits for raises no warning."""
    if not words.cancelled():
        words.exception()
