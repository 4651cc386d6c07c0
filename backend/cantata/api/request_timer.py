"""Work of one model that makes sound, measured from the request to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from cantata.api.http.streamed_response import ClientStalled
from cantata.api.playback import SimulatedPlayback
from cantata.api.timeline import build_timeline
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import (
    ChunkTimeout,
    InvalidRequest,
    Overloaded,
    Quarantined,
    StageDied,
)
from cantata.contract.service import ADMIT, SpeechChunk
from cantata.metrics import EndReason, Metrics, Outcome

logger = logging.getLogger(__name__)

RESERVES_S = (0.0, 0.1)
"""Sound that the simulated playback waits for before it begins."""

Clock = Callable[[], float]
"""Monotonic seconds."""


class Work(Protocol):
    """An open request to a model: speech or an answer."""

    @property
    def request_id(self) -> str: ...

    @property
    def milestones(self) -> tuple[Milestone, ...]: ...


class OutcomeSource(Protocol):
    """Work as far as it has come."""

    @property
    def complete(self) -> bool: ...

    @property
    def end_reason(self) -> EndReason:
        """Why it stops before its end, if it does without an error."""
        ...


W = TypeVar("W", bound=Work)


class RequestTimer:
    """Times one request and counts its sound."""

    def __init__(
        self, model: str, sample_rate: int, work: Work, asked_at: float, metrics: Metrics
    ) -> None:
        """`sample_rate` 0: it makes no sound."""
        self.model = model
        self.request_id = work.request_id
        self.asked_at = asked_at
        """Time of the request."""
        self.samples = 0
        """Made so far, per channel."""
        self.ttfp_s: float | None = None
        """Seconds from the request to the first PCM."""
        self.waited_s = 0.0
        """Time spent waiting for the model, not counting delays by the client."""
        self.complete = False
        self.timeline: dict[str, float] = {}
        """Where the time before the first PCM went; empty before it."""
        self.playbacks = [SimulatedPlayback(reserve_s) for reserve_s in RESERVES_S]
        self.end_reason = EndReason.CLIENT_LEFT
        """Why reading stops before its end, if it does."""
        self._milestones = work.milestones
        self._metrics = metrics
        self._sample_rate = sample_rate

    @property
    def duration_s(self) -> float:
        """Seconds of sound made so far."""
        return self.samples / self._sample_rate if self.samples else 0.0

    @property
    def rtf(self) -> float | None:
        """Seconds waited per second of sound; None before there is any."""
        return self.waited_s / self.duration_s if self.samples else None

    def _take(self, chunk: SpeechChunk, asked_at: float, arrived_at: float) -> None:
        """Measure a chunk that was asked for and arrived at these times."""
        if not len(chunk.samples):
            return
        if self.ttfp_s is None:
            self.ttfp_s = arrived_at - self.asked_at
            arrived = Milestone("deliver", arrived_at)
            milestones = (*self._milestones, *chunk.milestones, arrived)
            self.timeline = build_timeline(self.asked_at, milestones)
        duration_s = len(chunk.samples) / self._sample_rate
        self._metrics.sound(self.model, duration_s)
        for playback in self.playbacks:
            playback.take(asked_at, arrived_at, duration_s)
        self.samples += len(chunk.samples)


@asynccontextmanager
async def track_admission(
    model: str,
    opening: AbstractAsyncContextManager[W],
    asked_at: float,
    metrics: Metrics,
    *,
    batch: bool = False,
) -> AsyncIterator[W]:
    """Open some work; counts its admission or its rejection."""
    is_admitted = False
    try:
        async with opening as work:
            is_admitted = True
            waited_s = build_timeline(asked_at, work.milestones)[ADMIT]
            metrics.opened(model, waited_s=waited_s, batch=batch)
            yield work
    except (InvalidRequest, Overloaded) as refusal:
        if not is_admitted:
            metrics.rejected(model, refusal.code)
        raise


@asynccontextmanager
async def record_outcome(
    work: RequestTimer, metrics: Metrics, *, is_live: bool
) -> AsyncIterator[None]:
    """Count how some work ends; `is_live`: somebody listens to it."""
    try:
        yield
    except BaseException as error:  # counted and raised again; cancellation is an ending too
        _record(work, metrics, *classify_outcome(work, error), is_live=is_live)
        raise
    _record(work, metrics, *classify_outcome(work, None), is_live=is_live)


def classify_outcome(
    work: OutcomeSource, error: BaseException | None
) -> tuple[Outcome, EndReason | None]:
    """Classify how some work ended, and why if it ended early."""
    match error:
        case None if work.complete:
            return Outcome.COMPLETED, None
        case ClientStalled():
            return Outcome.ABORTED, EndReason.CLIENT_STALLED
        case None | asyncio.CancelledError() | ConnectionError():
            return Outcome.ABORTED, work.end_reason
        case ChunkTimeout():
            return Outcome.FAILED, EndReason.TIMEOUT
        case StageDied():
            return Outcome.FAILED, EndReason.STAGE_DIED
        case Quarantined():
            return Outcome.FAILED, EndReason.QUARANTINED
        case _:
            return Outcome.FAILED, EndReason.FAILED


def _record(
    work: RequestTimer,
    metrics: Metrics,
    outcome: Outcome,
    reason: EndReason | None,
    *,
    is_live: bool,
) -> None:
    model = work.model
    if work.ttfp_s is not None:
        metrics.first_pcm(model, work.ttfp_s)
        for playback in work.playbacks if is_live else ():
            metrics.played(model, playback.reserve_s, playback.underruns, playback.still_s)
    if reason is not None:
        metrics.aborted(model, reason)
    metrics.ended(model, outcome, work.duration_s, work.rtf, reason)
    figures = {
        "model": model,
        "work_id": work.request_id,
        "outcome": outcome,
        "reason": reason,
        "audio_s": work.duration_s,
        "ttfp_s": work.ttfp_s,
        "rtf": work.rtf,
        "timeline_s": work.timeline,
    }
    logger.info("%s after %.2f s of sound", outcome, work.duration_s, extra=figures)
