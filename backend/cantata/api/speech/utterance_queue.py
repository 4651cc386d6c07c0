"""The queue of one connection's utterances: spoken one after another, or cancelled."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from cantata.api.measured_run import MeasuredRun, open_utterance
from cantata.api.schemas import TimedMark
from cantata.api.speech.messages import (
    AudioDone,
    AudioMarks,
    AudioStart,
    AudioTimestamps,
    ErrorMessage,
    InputSpoken,
)
from cantata.api.speech.outbox import Outbox, SendPacer, make_frames
from cantata.api.speech.timestamps import MarkClock, to_timed_words
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk, SpeechModel, SpokenWord
from cantata.metrics import EndReason, Metrics
from cantata.utils.logs import log_for_request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Speak:
    """An utterance that waits to be spoken."""

    model: SpeechModel
    request: SpeechRequest
    context_id: str | None
    text_offset: int = 0
    timestamps: bool = False
    more_text: AsyncIterator[str] | None = None
    """The rest of the request's text, while it arrives."""
    utterance_id: str = field(default_factory=lambda: f"utt_{uuid.uuid4().hex[:16]}")


@dataclass(frozen=True, slots=True)
class Mark:
    """Reports when everything before it has been spoken."""

    context_id: str | None


Job = Speak | Mark


class UtteranceQueue:
    """A bounded queue of jobs and the current one.

    `cancel`, `finish` and `stop` are called by the reader and never wait; the abort of a
    cancelled utterance is awaited by `run` before anything else is spoken.
    """

    def __init__(
        self,
        outbox: Outbox,
        metrics: Metrics,
        max_jobs: int,
        on_busy: Callable[[bool], None],
        max_ahead_s: float | None = None,
    ) -> None:
        """
        Args:
            on_busy: hears whether anything is spoken or waits.
            max_ahead_s: sound is made this far ahead of a client that plays it at once, and then
                as it is played; None: as fast as it can be.
        """
        self._outbox = outbox
        self._metrics = metrics
        self._max_jobs = max_jobs
        self._on_busy = on_busy
        self.send_pacer = SendPacer(max_ahead_s)
        self.first_sound_s = 0.0
        """Seconds from the last utterance's beginning to its first sound; 0 before any."""
        self.on_idle: Callable[[], None] | None = None
        """Called when all utterances have been made; may add more."""
        self._jobs: deque[Job] = deque()
        self._current: _Current | None = None
        self._finishing = False
        self._wake = asyncio.Event()
        self._consumed = asyncio.Event()

    @property
    def heard_until(self) -> float:
        """Loop time at which a client that plays at once has played everything; 0 before any."""
        return self.send_pacer.heard_until

    @property
    def idle(self) -> bool:
        """Whether nothing is being spoken or waits, and more may come."""
        return not (self._jobs or self._current or self._finishing)

    def has_room(self, jobs: int) -> bool:
        return len(self._jobs) + jobs <= self._max_jobs

    async def wait_for_room(self, jobs: int) -> None:
        """Wait until there is room for this many more, or the queue is empty."""
        while self._jobs and not self.has_room(jobs):
            self._consumed.clear()
            await self._consumed.wait()

    def add(self, jobs: Sequence[Job]) -> None:
        self._jobs.extend(jobs)
        self._on_busy(True)
        self._wake.set()

    def cancel(self) -> None:
        """Drop waiting utterances and stop the current one. One is reported as cancelled, at once:
        the current one, or else the first waiting one."""
        waiting = next((job for job in self._jobs if isinstance(job, Speak)), None)
        self._jobs.clear()
        self._consumed.set()
        self.send_pacer.reset()
        dropped = self._outbox.drop_audio()
        current = self._current
        if current is not None and current.cancel(EndReason.CANCELLED):
            current.samples -= dropped[current.job.utterance_id]
            self._outbox.post(current.build_done(cancelled=True))
        elif waiting is not None:
            self._outbox.post(_Current(waiting).build_done(cancelled=True))

    def finish(self) -> None:
        """Let `run` return after what is queued."""
        self._finishing = True
        self._wake.set()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        """Let `run` return as soon as the current utterance's abort is complete."""
        self._jobs.clear()
        if self._current is not None:
            self._current.cancel(reason)
        self.finish()

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Speak until `finish` or `stop`."""
        while True:
            while self._jobs:
                job = self._jobs.popleft()
                self._consumed.set()
                await self._run_job(job, group)
            if self._finishing:
                return
            self._on_busy(False)
            self._wake.clear()
            if self.on_idle is not None:
                self.on_idle()
            await self._wake.wait()

    async def _run_job(self, job: Job, group: asyncio.TaskGroup) -> None:
        if isinstance(job, Mark):
            # Not put: if it waited for room, it would come after the answer to a cancel.
            self._outbox.post(InputSpoken(context_id=job.context_id))
            return
        # A task of its own, so that a cancel ends the utterance and not the loop around it.
        current = _Current(job)
        self._current = current
        current.task = group.create_task(self._speak(current), name=f"speak:{job.utterance_id}")
        await asyncio.wait([current.task])
        self._current = None

    async def _speak(self, current: _Current) -> None:
        job = current.job
        with log_for_request(job.utterance_id):
            await self._speak_aloud(current, job)

    async def _speak_aloud(self, current: _Current, job: Speak) -> None:
        try:
            async with open_utterance(
                job.model, job.request, self._metrics, more_text=job.more_text
            ) as utterance:
                current.utterance = utterance
                await self._outbox.put(current.build_start())
                async for chunk in utterance.run:
                    if chunk.words and job.timestamps:
                        await self._outbox.put(current.build_timestamps(chunk.words))
                        await self._put_marks(current, current.marks.take_until(chunk.words))
                    rate = job.model.sample_rate
                    for frame in make_frames(job.utterance_id, chunk.samples, rate):
                        await self._outbox.put(frame)
                        current.samples += frame.samples
                        self.send_pacer.take(frame.samples / rate)
                    await self.send_pacer.wait()
                self.first_sound_s = utterance.ttfp_s or self.first_sound_s
                if job.timestamps:
                    seconds = current.samples / job.model.sample_rate
                    await self._put_marks(current, current.marks.take_rest(seconds))
                if current.close():
                    self._outbox.post(current.build_done(cancelled=False))
        except CantataError as error:
            if current.close():
                logger.warning("utterance failed: %s", error)
                self._outbox.post(current.build_error(error))

    async def _put_marks(self, current: _Current, marks: list[TimedMark]) -> None:
        job = current.job
        if marks:
            found = AudioMarks(
                context_id=job.context_id, utterance_id=job.utterance_id, marks=marks
            )
            await self._outbox.put(found)


class _Current:
    """The current utterance. It is closed exactly once: by its end, its error or a cancel."""

    def __init__(self, job: Speak) -> None:
        self.job = job
        self.task: asyncio.Task[None] | None = None
        self.utterance: MeasuredRun[SpeechChunk] | None = None
        self.samples = 0
        """Given to the outbox and not dropped from it."""
        self.marks = MarkClock(job.request.text, job.text_offset)
        self._closed = False

    def close(self) -> bool:
        """Whether this call ended it."""
        first, self._closed = not self._closed, True
        return first

    def cancel(self, reason: EndReason) -> bool:
        """Cancel its task, once: a second cancel would break into the abort of the first."""
        if self.task is None or not self.close():
            return False
        if self.utterance is not None:
            self.utterance.end_reason = reason
        self.task.cancel()
        return True

    def build_start(self) -> AudioStart:
        model = self.job.model
        return AudioStart(
            context_id=self.job.context_id,
            utterance_id=self.job.utterance_id,
            sample_rate=model.sample_rate,
            channels=model.channels,
        )

    def build_timestamps(self, words: Sequence[SpokenWord]) -> AudioTimestamps:
        job = self.job
        return AudioTimestamps(
            context_id=job.context_id,
            utterance_id=job.utterance_id,
            words=to_timed_words(words, job.request.text, job.text_offset),
        )

    def build_done(self, *, cancelled: bool) -> AudioDone:
        utterance = self.utterance
        return AudioDone(
            context_id=self.job.context_id,
            utterance_id=self.job.utterance_id,
            samples=self.samples,
            duration_s=self.samples / self.job.model.sample_rate,
            ttfp_s=utterance.ttfp_s if utterance else None,
            rtf=utterance.rtf if utterance else None,
            cancelled=cancelled,
            timeline=utterance.timeline if utterance else {},
        )

    def build_error(self, error: CantataError) -> ErrorMessage:
        return ErrorMessage.of(error, self.job.context_id, self.job.utterance_id)
