"""One utterance of one model, measured: shared by HTTP and WebSocket."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cantata.api.playback import SimulatedPlayback
from cantata.api.streamed_response import ClientStalled
from cantata.api.timeline import timeline_of
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import (
    ChunkTimeout,
    InvalidRequest,
    Overloaded,
    Quarantined,
    StageDied,
)
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import ADMIT, ServedModel, SpeechChunk, Utterance
from cantata.metrics import EndReason, Metrics, Outcome

logger = logging.getLogger(__name__)

RESERVES_S = (0.0, 0.1)
"""Sound that the simulated playback waits for before it begins."""

Clock = Callable[[], float]
"""Monotonic seconds."""


class MeasuredUtterance:
    """An open utterance and its measurements."""

    def __init__(
        self,
        model: ServedModel,
        utterance: Utterance,
        asked_at: float,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self.model = model.name
        self.request_id = utterance.request_id
        self.asked_at = asked_at
        """Time of the request, by `clock`."""
        self.samples = 0
        """Made so far, per channel."""
        self.ttfp_s: float | None = None
        """From the request to the first PCM."""
        self.waited_s = 0.0
        """Time spent waiting for PCM, not counting delays by the client."""
        self.complete = False
        self.timeline: dict[str, float] = {}
        """Where the time before the first PCM went; empty before it."""
        self.playbacks = [SimulatedPlayback(reserve_s) for reserve_s in RESERVES_S]
        self.end_reason = EndReason.CLIENT_LEFT
        """Why reading stops before its end, if it does."""
        self._milestones = utterance.milestones
        self._metrics = metrics
        self._sample_rate = model.sample_rate
        self._chunks = aiter(utterance)
        self._begun = False
        self._clock = clock

    @property
    def duration_s(self) -> float:
        """Seconds of sound made so far."""
        return self.samples / self._sample_rate

    @property
    def rtf(self) -> float | None:
        """Seconds waited per second of sound; None before there is any."""
        return self.waited_s / self.duration_s if self.samples else None

    def __aiter__(self) -> MeasuredUtterance:
        return self

    async def __anext__(self) -> SpeechChunk:
        """The next chunk, never without samples as well as words."""
        asked_at = self._clock() if self._begun else self.asked_at
        self._begun = True
        try:
            chunk = await anext(self._chunks)
            while not (len(chunk.samples) or chunk.words):
                chunk = await anext(self._chunks)
        except StopAsyncIteration:
            self.complete = True
            raise
        finally:
            now = self._clock()
            self.waited_s += now - asked_at
        if self.ttfp_s is None and len(chunk.samples):
            self.ttfp_s = now - self.asked_at
            arrived = Milestone("deliver", now)
            self.timeline = timeline_of(
                self.asked_at, (*self._milestones, *chunk.milestones, arrived)
            )
        if len(chunk.samples):
            self._take(len(chunk.samples) / self._sample_rate, asked_at, now)
        self.samples += len(chunk.samples)
        return chunk

    def _take(self, duration_s: float, asked_at: float, arrived_at: float) -> None:
        self._metrics.sound(self.model, duration_s)
        for playback in self.playbacks:
            playback.take(asked_at, arrived_at, duration_s)


@asynccontextmanager
async def open_utterance(
    model: ServedModel,
    request: SpeechRequest,
    metrics: Metrics,
    clock: Clock = time.monotonic,
    *,
    batch: bool = False,
    more_text: AsyncIterator[str] | None = None,
) -> AsyncIterator[MeasuredUtterance]:
    """Open an utterance; leaving awaits its abort and counts how it ended."""
    asked_at = clock()
    admitted = False
    try:
        async with model.speak(request, batch=batch, more_text=more_text) as utterance:
            admitted = True
            waited_s = timeline_of(asked_at, utterance.milestones)[ADMIT]
            metrics.opened(model.name, waited_s=waited_s, batch=batch)
            measured = MeasuredUtterance(model, utterance, asked_at, clock, metrics)
            # Files have no listener, and late text is not the server's delay.
            heard = not batch and more_text is None
            async with _counted(measured, metrics, heard=heard):
                yield measured
    except (InvalidRequest, Overloaded) as refusal:
        if not admitted:
            metrics.rejected(model.name, refusal.code)
        raise


@asynccontextmanager
async def _counted(
    utterance: MeasuredUtterance, metrics: Metrics, *, heard: bool
) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:  # counted and raised again; cancellation is an ending too
        _record(utterance, metrics, *_ending_of(utterance, error), heard=heard)
        raise
    _record(utterance, metrics, *_ending_of(utterance, None), heard=heard)


def _ending_of(
    utterance: MeasuredUtterance, error: BaseException | None
) -> tuple[Outcome, EndReason | None]:
    """How an utterance ended, and why, if before the end of its text."""
    match error:
        case None if utterance.complete:
            return Outcome.COMPLETED, None
        case ClientStalled():
            return Outcome.ABORTED, EndReason.CLIENT_STALLED
        case None | asyncio.CancelledError() | ConnectionError():
            return Outcome.ABORTED, utterance.end_reason
        case ChunkTimeout():
            return Outcome.FAILED, EndReason.TIMEOUT
        case StageDied():
            return Outcome.FAILED, EndReason.STAGE_DIED
        case Quarantined():
            return Outcome.FAILED, EndReason.QUARANTINED
        case _:
            return Outcome.FAILED, EndReason.FAILED


def _record(
    utterance: MeasuredUtterance,
    metrics: Metrics,
    outcome: Outcome,
    reason: EndReason | None,
    *,
    heard: bool,
) -> None:
    model = utterance.model
    if utterance.ttfp_s is not None:
        metrics.first_pcm(model, utterance.ttfp_s)
        for playback in utterance.playbacks if heard else ():
            metrics.played(model, playback.reserve_s, playback.underruns, playback.still_s)
    if reason is not None:
        metrics.aborted(model, reason)
    metrics.ended(model, outcome, utterance.duration_s, utterance.rtf, reason)
    figures = {
        "model": model,
        "work_id": utterance.request_id,
        "outcome": outcome,
        "reason": reason,
        "audio_s": utterance.duration_s,
        "ttfp_s": utterance.ttfp_s,
        "rtf": utterance.rtf,
        "timeline_s": utterance.timeline,
    }
    logger.info("%s after %.2f s of sound", outcome, utterance.duration_s, extra=figures)
