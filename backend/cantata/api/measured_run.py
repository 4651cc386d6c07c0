"""A run of a model that makes sound, measured from the request to its end; where the time before
its first sound went, in the form that clients get."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from cantata.api.http.streamed_response import ClientStalled
from cantata.audio.playback import SimulatedPlayback
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import (
    ChunkTimeout,
    InvalidRequest,
    Overloaded,
    Quarantined,
    StageDied,
)
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import ADMIT, Run, SpeechChunk, SpeechModel, Utterance
from cantata.metrics import EndReason, Metrics, Outcome
from cantata.telemetry.request_record import WorkRecord, note_work

SERVER_TIMING_HEADER = "server-timing"
"""W3C Server Timing: browsers show it with the request and expose it to scripts."""

Timeline = Mapping[str, float]
"""Seconds by step, in the order in which they were taken; together they are the whole."""


def build_timeline(began_s: float, milestones: Iterable[Milestone]) -> dict[str, float]:
    """Seconds that each step took, from the end of the one before it."""
    timeline: dict[str, float] = {}
    for milestone in milestones:
        timeline[milestone.step] = milestone.at_s - began_s
        began_s = milestone.at_s
    return timeline


def format_server_timing(timeline: Timeline) -> str:
    """The header's value; durations are in milliseconds."""
    return ", ".join(f"{step};dur={seconds * 1000:.1f}" for step, seconds in timeline.items())


logger = logging.getLogger(__name__)

RESERVES_S = (0.0, 0.1)
"""Sound that the simulated playback waits for before it begins."""

Clock = Callable[[], float]
"""Monotonic seconds."""


class OutcomeSource(Protocol):
    """Work as far as it has come."""

    @property
    def complete(self) -> bool: ...

    @property
    def end_reason(self) -> EndReason:
        """Why it stops before its end, if it does without an error."""
        ...


E = TypeVar("E")
O = TypeVar("O", bound=Run[Any])  # noqa: E741
W = TypeVar("W", bound="MeasuredRun[Any]")


class MeasuredRun(Generic[E]):
    """An open run of a model that makes sound, and its measurements: it observes `run` beside
    whoever reads it."""

    kind = "speak"
    """Of `WorkRecord`."""

    def __init__(
        self,
        model: SpeechModel | ChatModel,
        run: Run[E],
        asked_at: float,
        metrics: Metrics,
        clock: Clock = time.monotonic,
    ) -> None:
        self.model = model.name
        self.request_id = run.request_id
        self.asked_at = asked_at
        """Time of the request, by the clock."""
        self.samples = 0
        """Made so far, per channel."""
        self.ttfp_s: float | None = None
        """Seconds from the request to the first PCM."""
        self.complete = False
        self.timeline: dict[str, float] = {}
        """Where the time before the first PCM went; empty before it."""
        self.playbacks = [SimulatedPlayback(reserve_s) for reserve_s in RESERVES_S]
        self.end_reason = EndReason.CLIENT_LEFT
        """Why reading stops before its end, if it does."""
        self.waited_s = 0.0
        """Time spent waiting for the model, not counting delays by the client."""
        self._waiting_since: float | None = None
        self._is_first = True
        self.run = run
        self._metrics = metrics
        self._clock = clock
        self._sample_rate = model.sample_rate
        run.observe(self)

    @property
    def duration_s(self) -> float:
        return self.samples / self._sample_rate if self.samples else 0.0

    @property
    def rtf(self) -> float | None:
        """Seconds waited per second of sound; None before there is any."""
        return self.waited_s / self.duration_s if self.samples else None

    def on_wait(self) -> None:
        self._waiting_since = self.asked_at if self._is_first else self._clock()
        self._is_first = False

    def on_event(self, event: E) -> None:
        waited_since, now = self._waiting_since, self._clock()
        self.stop_waiting(now)
        if isinstance(event, SpeechChunk) and len(event.samples) and waited_since is not None:
            self._take(event, waited_since, now)

    def on_end(self) -> None:
        self.complete = True
        self.stop_waiting(self._clock())

    def stop_waiting(self, now: float) -> None:
        """An event has come, or none ever will."""
        if self._waiting_since is not None:
            self.waited_s += now - self._waiting_since
            self._waiting_since = None

    def record(self, outcome: Outcome, reason: EndReason | None, *, is_live: bool) -> None:
        """Count how it ended; `is_live`: somebody listens to it."""
        self.stop_waiting(self._clock())
        model, metrics = self.model, self._metrics
        if self.ttfp_s is not None:
            metrics.observe_first_pcm(model, self.ttfp_s)
            for playback in self.playbacks if is_live else ():
                metrics.observe_playback(
                    model, playback.reserve_s, playback.underruns, playback.still_s
                )
        if reason is not None:
            metrics.count_abort(model, reason)
        metrics.finish(model, outcome, self.duration_s, self.rtf, reason)
        figures = {
            "model": model,
            "work_id": self.request_id,
            "outcome": outcome,
            "reason": reason,
            "audio_s": self.duration_s,
            "ttfp_s": self.ttfp_s,
            "rtf": self.rtf,
            "timeline_s": self.timeline,
        }
        logger.info("%s after %.2f s of sound", outcome, self.duration_s, extra=figures)
        note_work(
            WorkRecord(
                self.kind,
                model,
                self.request_id,
                outcome,
                reason,
                self.asked_at,
                self._clock(),
                self.timeline,
                self.ttfp_s,
                self.duration_s,
            )
        )

    def _take(self, chunk: SpeechChunk, asked_at: float, arrived_at: float) -> None:
        if self.ttfp_s is None:
            self.ttfp_s = arrived_at - self.asked_at
            arrived = Milestone("deliver", arrived_at)
            milestones = (*self.run.milestones, *chunk.milestones, arrived)
            self.timeline = build_timeline(self.asked_at, milestones)
        duration_s = len(chunk.samples) / self._sample_rate
        self._metrics.add_sound(self.model, duration_s)
        for playback in self.playbacks:
            playback.take(asked_at, arrived_at, duration_s)
        self.samples += len(chunk.samples)


@asynccontextmanager
async def open_utterance(
    model: SpeechModel,
    request: SpeechRequest,
    metrics: Metrics,
    clock: Clock = time.monotonic,
    *,
    more_text: AsyncIterator[str] | None = None,
) -> AsyncIterator[MeasuredRun[SpeechChunk]]:
    """Open an utterance; leaving awaits its abort and counts how it ended."""

    def measured(utterance: Utterance, asked_at: float) -> MeasuredRun[SpeechChunk]:
        return MeasuredRun(model, utterance, asked_at, metrics, clock)

    running = model.run(request, more_text=more_text)
    # Files have no listener, and late text is not the server's delay.
    is_live = not request.batch and more_text is None
    async with measure(
        model.name, running, measured, metrics, is_live=is_live, batch=request.batch, clock=clock
    ) as utterance:
        yield utterance


@asynccontextmanager
async def measure(
    model: str,
    running: AbstractAsyncContextManager[O],
    measured: Callable[[O, float], W],
    metrics: Metrics,
    *,
    is_live: bool,
    batch: bool = False,
    clock: Clock = time.monotonic,
) -> AsyncIterator[W]:
    """Open a run; counts its admission or rejection, and how it ends.

    Args:
        running: entered here.
        measured: of the open run and the time of its request.
        clock: monotonic seconds.
    """
    asked_at = clock()
    is_admitted = False
    try:
        async with running as run:
            is_admitted = True
            waited_s = build_timeline(asked_at, run.milestones)[ADMIT]
            metrics.start(model, waited_s=waited_s, batch=batch)
            work = measured(run, asked_at)
            async with _record_work(work, is_live=is_live):
                yield work
    except (InvalidRequest, Overloaded) as refusal:
        if not is_admitted:
            metrics.count_rejection(model, refusal.code)
        raise


@asynccontextmanager
async def _record_work(work: MeasuredRun[Any], *, is_live: bool) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:  # counted and raised again; cancellation is an ending too
        work.record(*classify_outcome(work, error), is_live=is_live)
        raise
    work.record(*classify_outcome(work, None), is_live=is_live)


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
