"""A window of speech for a model that recognizes it when it is complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

import numpy as np

from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.transcripts import SPEECH_RATE, Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.utils.logs import make_work_id


class WholeWindowModel(Protocol):
    @property
    def max_window_s(self) -> float:
        """Seconds of the longest one."""
        ...

    async def transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        """The transcript of a window that is not too long."""
        ...


class WholeWindow:
    """Implements `Recognition`: keeps the sound until `finish`. `model`: recognizes it."""

    def __init__(self, model: WholeWindowModel, request: TranscriptionRequest) -> None:
        self.request_id = make_work_id()
        self._model = model
        self._request = request
        self._pieces: list[Sound] = []
        self._samples = 0
        self._is_finished = asyncio.Event()

    async def feed(self, sound: Sound, *, recognize: bool = False) -> None:
        self._samples += len(sound)
        if self._samples > self._model.max_window_s * SPEECH_RATE:
            raise InvalidRequest(
                f"the window has {self._samples / SPEECH_RATE:.1f} s of sound; valid: up to "
                f"{self._model.max_window_s:g} s"
            )
        self._pieces.append(sound)

    async def partials(self) -> AsyncGenerator[Transcript, None]:
        """There are none: ends with `finish`."""
        await self._is_finished.wait()
        return
        yield

    async def finish(self) -> Transcript:
        try:
            return await self._model.transcribe(self._request, self._sound)
        finally:
            self._is_finished.set()

    @property
    def _sound(self) -> Sound:
        return np.concatenate(self._pieces or [np.zeros(0, np.float32)])


class GrowingWindow(WholeWindow):
    """Also recognizes what has come so far, and nothing twice."""

    def __init__(self, model: WholeWindowModel, request: TranscriptionRequest) -> None:
        super().__init__(model, request)
        self._asked: asyncio.Queue[Sound | None] = asyncio.Queue()
        """Sound whose words are wanted; None: no more."""
        self._recognizing = asyncio.Lock()
        self._known: tuple[int, Transcript] | None = None
        """Samples, and their transcript."""

    async def feed(self, sound: Sound, *, recognize: bool = False) -> None:
        await super().feed(sound)
        if recognize:
            self._asked.put_nowait(self._sound)

    async def partials(self) -> AsyncGenerator[Transcript, None]:
        """What has been said so far, each time it was asked for."""
        while (sound := await self._asked.get()) is not None:
            yield await self._recognize(sound)

    async def finish(self) -> Transcript:
        try:
            return await self._recognize(self._sound)
        finally:
            self._asked.put_nowait(None)

    async def _recognize(self, sound: Sound) -> Transcript:
        async with self._recognizing:
            if self._known is None or self._known[0] != len(sound):
                self._known = len(sound), await self._model.transcribe(self._request, sound)
            return self._known[1]
