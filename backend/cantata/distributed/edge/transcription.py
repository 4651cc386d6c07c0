"""A model on the replicas that turns speech into text, as the API sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import Recognition
from cantata.distributed.edge.remote_work import RemoteCall, RemoteWork
from cantata.distributed.edge.replayable_input import ReplayableSound
from cantata.distributed.edge.served import RemoteServed
from cantata.distributed.messages import (
    TRANSCRIPT_EVENTS,
    FrameKind,
    TranscribeRequest,
    WindowOpened,
    WindowTranscript,
)
from cantata.distributed.model_advertisement import TranscribingModel
from cantata.utils.logs import make_work_id


class RemoteTranscriptionModel(RemoteServed[TranscribingModel]):
    """Implements `contract.transcription_service.TranscriptionModel`."""

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of what it understands."""
        return self.card.languages

    @property
    def translates(self) -> bool:
        return self.card.translates

    @property
    def has_timestamps(self) -> bool:
        return self.card.has_timestamps

    @property
    def has_partials(self) -> bool:
        return self.card.has_partials

    @property
    def max_window_s(self) -> float:
        return self.card.max_window_s

    def check_room(self) -> None:
        """Reject a live request if no window can begin; takes microseconds. Raises Overloaded: no
        replica has a place. Windows of speakers do not wait."""
        self._queue.check_place()

    @asynccontextmanager
    async def run(self, request: TranscriptionRequest) -> AsyncIterator[Recognition]:
        message = TranscribeRequest(make_work_id(), self.name, request)
        sound = ReplayableSound(self.max_window_s)
        work: RemoteWork[WindowOpened, WindowTranscript] = self._build_work(
            RemoteCall(
                FrameKind.TRANSCRIBE,
                lambda: message,
                self.name,
                TranscribingModel,
                queued=False,
                live=not request.batch,
                opened=(FrameKind.WINDOW, WindowOpened),
                events=TRANSCRIPT_EVENTS,
                read=lambda event: cast(WindowTranscript, event),
            ),
            None,  # its sound is not known yet
            _TranscriptReplay(),
            sound.send_on,
        )
        try:
            async with self._run_work(work) as (opened, transcripts):
                window = _RemoteWindow(opened.request_id, sound, transcripts)
                try:
                    yield window
                finally:
                    await window.close()
        finally:
            await sound.close()


class _TranscriptReplay:
    """Each transcript replaces those before it, also those of a replica that was lost. So any
    replica may take over, even one with other files."""

    is_begun = False
    playout_deadline_s = 0.0
    """Nobody hears words."""

    def restart(self) -> None:
        """The repetition knows at least as much as was known: all of its sound is there."""

    def take(self, event: WindowTranscript) -> WindowTranscript:
        """All of it."""
        return event

    def check_end(self) -> None:
        """The reader notices if the last transcript is missing."""


class _RemoteWindow:
    """Implements `contract.transcription_service.Recognition`. What arrives is read at once: so a
    lost replica is replaced while the window is fed, and of transcripts that nobody has taken, the
    last one is kept.

    Args:
        transcripts: of the window, the last one final.
    """

    def __init__(
        self,
        request_id: str,
        sound: ReplayableSound,
        transcripts: AsyncGenerator[WindowTranscript, None],
    ) -> None:
        self.request_id = request_id
        self._sound = sound
        self._partial: Transcript | None = None
        """That was not taken yet."""
        self._news = asyncio.Event()
        """There is a partial transcript, or it is over."""
        self._reading = asyncio.create_task(self._read(transcripts), name="cantata:read-words")
        self._reading.add_done_callback(self._end)

    async def feed(self, sound: Sound, *, recognize: bool = False) -> None:
        """Add sound to the window. It waits for nothing: a window is short enough to be kept."""
        if self._reading.done():
            self._reading.result()
        self._sound.add(sound, recognize=recognize)

    async def partials(self) -> AsyncGenerator[Transcript, None]:
        """What has been said so far; a slow reader finds the latest."""
        while not self._reading.done():
            await self._news.wait()
            self._news.clear()
            partial, self._partial = self._partial, None
            if partial is not None and not self._reading.done():
                yield partial
        if not self._reading.cancelled():
            self._reading.result()

    async def finish(self) -> Transcript:
        self._sound.end()
        return await asyncio.shield(self._reading)

    async def close(self) -> None:
        """Read nothing more."""
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self, transcripts: AsyncGenerator[WindowTranscript, None]) -> Transcript:
        last: WindowTranscript | None = None
        async for last in transcripts:
            if not last.final:
                self._partial = last.transcript
                self._news.set()
        if last is None or not last.final:
            raise RequestFailed("the replica ended a window without its transcript")
        return last.transcript

    def _end(self, reading: asyncio.Task[Transcript]) -> None:
        if not reading.cancelled():
            reading.exception()  # whoever asks gets it; if nobody does, it is no news for the log
        self._news.set()
