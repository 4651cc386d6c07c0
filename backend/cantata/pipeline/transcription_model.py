"""One served model that listens: windows of speech in, transcripts out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from cantata.contract.data.errors import CantataError, ChunkTimeout
from cantata.contract.data.request import PipelineRequest
from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    SoundPiece,
    Transcript,
    TranscriptionRequest,
    TranscriptUpdate,
)
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.contract.model.recognizer import Sound, TranscriptionBuilder
from cantata.contract.transcription_service import Recognition
from cantata.pipeline.admission import Demand
from cantata.pipeline.model import PipelineModel
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.whole_window import WholeWindow
from cantata.pipeline.window_policy import WindowPolicy
from cantata.utils.logs import make_work_id

_QUEUE_S = 600.0
"""Longest wait for the transcript of a window that is complete: others may be before it. A stage
that hangs is noticed by itself, long before."""
_LISTENING_S = 86_400.0
"""How long a window may stay without a transcript: as long as somebody speaks."""


class PipelineTranscriptionModel(PipelineModel):
    """Implements `contract.transcription_service.TranscriptionModel` over a plug-in's builder and
    its pipeline."""

    def __init__(self, builder: TranscriptionBuilder, policy: WindowPolicy) -> None:
        super().__init__(policy)
        self._builder = builder
        self._edge = EdgeSpec(builder.output, CLIENT)

    @property
    def languages(self) -> tuple[str, ...]:
        return self._builder.languages

    @property
    def translates(self) -> bool:
        return self._builder.translates

    @property
    def has_timestamps(self) -> bool:
        return self._builder.has_timestamps

    @property
    def has_partials(self) -> bool:
        return self._builder.stage is not None

    @property
    def max_window_s(self) -> float:
        return self._builder.max_window_s

    async def warm_up(self) -> None:
        """Recognize a first window."""
        async with self._open_window(TranscriptionRequest(timestamps=True)) as window:
            await window.feed(self._builder.warm_up)
            await window.finish()

    @asynccontextmanager
    async def run(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        await self._policy.wait_until_ready()
        demand = Demand(make_work_id(), batch=request.batch)
        async with self._policy.admit(demand), self._open_window(request) as window:
            yield window

    @asynccontextmanager
    async def _open_window(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        if self._builder.stage is None:
            yield WholeWindow(self, request)
            return
        request_id = make_work_id()
        built = await self._build(request_id, request, None)
        async with self.orchestrator.open(built) as opened:
            opened.silence_s = _LISTENING_S
            max_samples = round(self.max_window_s * SPEECH_RATE)
            yield _StageWindow(
                self.orchestrator, opened, self._builder.stage, self._edge, max_samples
            )

    async def _build(
        self, request_id: str, request: TranscriptionRequest, sound: Sound | None
    ) -> PipelineRequest:
        build = self._builder.build
        built = await self._policy.text_executor.run(
            len(request.prompt), build, request_id, request, sound
        )
        self.orchestrator.check(built)
        return replace(built, batch=request.batch)

    async def transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        """The transcript of a whole window, of a pipeline without a recognition stage."""
        reader = self._builder.reader()
        assert reader is not None, "a model without a recognition stage has a reader"
        built = await self._build(make_work_id(), request, sound)
        async with self.orchestrator.open(built) as opened:
            async for chunk in self.orchestrator.output(opened, self._edge):
                reader.read(chunk.payload)
        said = reader.end()
        language = said.language or request.language or ""
        return replace(said, language=language, seconds=len(sound) / SPEECH_RATE)


class _StageWindow:
    """Implements `Recognition` over a recognition stage."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        opened: OpenRequest,
        stage: str,
        edge: EdgeSpec,
        max_samples: int,
    ) -> None:
        self._room = max_samples
        """Samples that the window may still get; less than 0: the stage refuses it."""
        self.request_id = opened.request_id
        self._orchestrator = orchestrator
        self._opened = opened
        self._stage = stage
        self._updates = opened.outputs[edge.source]
        self._is_reading = asyncio.Lock()
        self._last: Transcript | None = None
        self._error: CantataError | None = None
        """Why no more transcripts come."""
        self._is_over = False

    async def feed(self, sound: Sound, *, recognize: bool = False) -> None:
        """Add sound to the window. The first that is too much makes the stage refuse the window;
        what follows is dropped, because the open request keeps all that was sent on."""
        if self._room < 0:
            return
        self._room -= len(sound)
        await self._send(SoundPiece(sound, recognize), final=False)

    async def partials(self) -> AsyncGenerator[Transcript, None]:
        while (transcript := await self._receive_next()) is not None:
            if self._is_over:
                return
            yield transcript

    async def finish(self) -> Transcript:
        """The transcript; no sound follows."""
        await self._send(SoundPiece(np.zeros(0, np.float32)), final=True)
        try:
            async with asyncio.timeout(_QUEUE_S):
                while not self._is_over:
                    await self._receive_next()
        except TimeoutError:
            raise ChunkTimeout(f"no transcript within {_QUEUE_S:g} s") from None
        assert self._last is not None
        return self._last

    async def _send(self, sound: SoundPiece, *, final: bool) -> None:
        await self._orchestrator.extend(self._opened, self._stage, sound, final=final)

    async def _receive_next(self) -> Transcript | None:
        """The next transcript; None after the last one. Two tasks may wait for it: the one that
        takes partial transcripts, and the one that finishes the window."""
        async with self._is_reading:
            if self._is_over:
                return None
            if self._error is not None:
                raise self._error
            try:
                chunk = await anext(self._updates)
            except CantataError as error:
                self._error = error  # the other task waits for it, too
                raise
            self._last = cast(TranscriptUpdate, chunk.payload).transcript
            self._is_over = chunk.final
            return self._last
