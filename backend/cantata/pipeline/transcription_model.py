"""One served model that listens: windows of speech in, transcripts out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from cantata.contract.data.errors import (
    CantataError,
    ChunkTimeout,
    Overloaded,
    StageDied,
)
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
from cantata.contract.service import AdmissionReport
from cantata.contract.transcription_service import Recognition
from cantata.pipeline.model_start import RETRY_S, ModelStart
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.text_executor import TextExecutor
from cantata.pipeline.whole_window import WholeWindow
from cantata.scheduling.admission import BATCH, LIVE, QUEUE_FULL
from cantata.utils.logs import new_work_id

_LOADING_S = 60.0
"""Longest wait for a model that still loads."""
_QUEUE_S = 600.0
"""Longest wait for the transcript of a window that is complete: others may be before it. A stage
that hangs is noticed by itself, long before."""
_LISTENING_S = 86_400.0
"""How long a window may stay without a transcript: as long as somebody speaks."""
_WAITING_FOR_START = 64
"""Windows that may wait while the model loads."""
_BATCH_SHARE = 2
"""Windows of files may hold one in so many slots."""


class PipelineTranscriptionModel:
    """Implements `contract.transcription_service.TranscriptionModel` over a plug-in's builder and
    its pipeline.

    Args:
        name: of the model.
        builder: of requests.
        orchestrator: of its pipeline.
    """

    def __init__(
        self, name: str, builder: TranscriptionBuilder, orchestrator: Orchestrator
    ) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self._builder = builder
        self._edge = EdgeSpec(builder.output, CLIENT)
        self._text_executor = TextExecutor()
        self._start = ModelStart(name)
        self._files = asyncio.Semaphore(1)
        self._freed = asyncio.Event()
        """Set whenever a window leaves its slot."""
        self._running = {LIVE: 0, BATCH: 0}
        self._waiting = 0
        self._admitted = {LIVE: 0, BATCH: 0}
        self._refused = {QUEUE_FULL: 0}

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of what it understands."""
        return self._builder.languages

    @property
    def translates(self) -> bool:
        """Whether it can write other languages in English."""
        return self._builder.translates

    @property
    def has_timestamps(self) -> bool:
        """Whether it knows when each word was spoken."""
        return self._builder.has_timestamps

    @property
    def has_partials(self) -> bool:
        """Whether it recognises windows that still arrive."""
        return self._builder.stage is not None

    @property
    def max_window_s(self) -> float:
        """Seconds of the longest window."""
        return self._builder.max_window_s

    @property
    def admission(self) -> AdmissionReport:
        """Running and waiting windows; no places before `start` has finished."""
        if not self._start.done:
            return AdmissionReport(0, 0, 0, 0)
        slots = self.orchestrator.slots
        return AdmissionReport(
            places=slots,
            running=sum(self._running.values()),
            waiting=0,
            waiting_batch=self._waiting,
            refused=dict(self._refused),
            admitted=dict(self._admitted),
            slots=slots,
            slots_in_use=self.orchestrator.slots_in_use,
            quarantined=self.orchestrator.quarantined,
        )

    async def start(self) -> None:
        """Start the pipeline and recognise a first window."""
        await self._start.run(self._start_and_warm_up())

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        self._start.give_up()
        self._text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a live request if no window can begin; takes microseconds.

        Raises:
            Overloaded: every slot is taken.
        """
        if self._start.done and not self._has_room:
            self._refused[QUEUE_FULL] += 1
            raise Overloaded(f"all {self.orchestrator.slots} slots are taken", RETRY_S)

    @asynccontextmanager
    async def recognize(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        """Begin a window; leaving the block frees it everywhere.

        Raises:
            InvalidRequest: an option cannot be served.
            Overloaded: every slot is taken.
            StageDied: the model is not running.
        """
        if not self._start.done:
            await self._start.wait(_LOADING_S, _WAITING_FOR_START)
        if not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")
        async with self._place(batch=request.batch), self._window(request) as window:
            with self.orchestrator.track_request():
                yield window

    @property
    def _has_room(self) -> bool:
        return sum(self._running.values()) < self.orchestrator.slots

    @asynccontextmanager
    async def _place(self, *, batch: bool) -> AsyncIterator[None]:
        """Windows of files wait for theirs, those of speakers do not."""
        kind = BATCH if batch else LIVE
        if not batch:
            self.check_room()
        else:
            await self._wait_for_place()
        self._running[kind] += 1
        self._admitted[kind] += 1
        try:
            yield
        finally:
            self._running[kind] -= 1
            self._freed.set()
            if batch:
                self._files.release()

    async def _wait_for_place(self) -> None:
        """Take one of the places of files once there is also a slot: speakers may have them all."""
        self._waiting += 1
        try:
            await self._files.acquire()
            try:
                while not self._has_room:
                    self._freed.clear()
                    await self._freed.wait()
            except asyncio.CancelledError:
                self._files.release()
                raise
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def _window(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        if self._builder.stage is None:
            yield WholeWindow(self, request)
            return
        request_id = new_work_id()
        built = await self._build(request_id, request, None)
        async with self.orchestrator.open(built) as opened:
            opened.silence_s = _LISTENING_S
            most = round(self.max_window_s * SPEECH_RATE)
            yield _StageWindow(self.orchestrator, opened, self._builder.stage, self._edge, most)

    async def _build(
        self, request_id: str, request: TranscriptionRequest, sound: Sound | None
    ) -> PipelineRequest:
        build = self._builder.build
        built = await self._text_executor.run(
            len(request.prompt), build, request_id, request, sound
        )
        self.orchestrator.check(built)
        return replace(built, batch=request.batch)

    async def transcribe(self, request: TranscriptionRequest, sound: Sound) -> Transcript:
        """The transcript of a whole window, of a pipeline without a recognition stage."""
        reader = self._builder.reader()
        assert reader is not None, "a model without a recognition stage has a reader"
        built = await self._build(new_work_id(), request, sound)
        async with (
            self.orchestrator.open(built) as opened,
            aclosing(self.orchestrator.output(opened, self._edge)) as chunks,
        ):
            async for chunk in chunks:
                reader.read(chunk.payload)
        said = reader.end()
        language = said.language or request.language or ""
        return replace(said, language=language, seconds=len(sound) / SPEECH_RATE)

    async def _start_and_warm_up(self) -> None:
        await self.orchestrator.start()
        self._files = asyncio.Semaphore(max(1, self.orchestrator.slots // _BATCH_SHARE))
        async with self._window(TranscriptionRequest(timestamps=True)) as window:
            await window.feed(self._builder.warm_up)
            await window.finish()


class _StageWindow:
    """Implements `Recognition` over a recognition stage."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        opened: OpenRequest,
        stage: str,
        edge: EdgeSpec,
        most: int,
    ) -> None:
        self._room = most
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
        """What has been said so far, each time it is known."""
        while (transcript := await self._next()) is not None:
            if self._is_over:
                return
            yield transcript

    async def finish(self) -> Transcript:
        """The transcript; no sound follows."""
        await self._send(SoundPiece(np.zeros(0, np.float32)), final=True)
        try:
            async with asyncio.timeout(_QUEUE_S):
                while not self._is_over:
                    await self._next()
        except TimeoutError:
            raise ChunkTimeout(f"no transcript within {_QUEUE_S:g} s") from None
        assert self._last is not None
        return self._last

    async def _send(self, sound: SoundPiece, *, final: bool) -> None:
        await self._orchestrator.extend(self._opened, self._stage, sound, final=final)

    async def _next(self) -> Transcript | None:
        """The next transcript; None after the last one. Two tasks may wait for it: the one that
        takes partial transcripts, and the one that finishes the window."""
        async with self._is_reading:
            if self._is_over:
                return None
            if self._error is not None:
                raise self._error
            try:
                chunk = await self._updates.next()
            except CantataError as error:
                self._error = error  # the other task waits for it, too
                raise
            self._last = cast(TranscriptUpdate, chunk.payload).transcript
            self._is_over = chunk.final
            return self._last
