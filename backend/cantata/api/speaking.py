"""One utterance of one model, measured: what HTTP and WebSocket share."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cantata.api.player import SimulatedPlayer
from cantata.api.streamed import ClientStalled
from cantata.api.timeline import timeline_of
from cantata.contract.chunks import Milestone
from cantata.contract.errors import ChunkTimeout, InvalidRequest, Overloaded, StageDied
from cantata.contract.request import SpeechRequest
from cantata.contract.service import ADMIT, ServedModel, SpeechChunk, Utterance
from cantata.metrics import EndReason, Metrics, Outcome

logger = logging.getLogger(__name__)

RESERVES_S = (0.0, 0.1)
"""Sound that the simulated players wait for before they begin."""

Clock = Callable[[], float]
"""Monotonic seconds."""


class Speech:
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
        """When the utterance was asked for, by `clock`."""
        self.samples = 0
        """Made so far, per channel."""
        self.ttfp_s: float | None = None
        """From asking to the first PCM."""
        self.waited_s = 0.0
        """Spent waiting for PCM; time in which the listener held it back is not in it."""
        self.complete = False
        self.timeline: dict[str, float] = {}
        """Where the time before the first PCM went; empty before it."""
        self.players = [SimulatedPlayer(reserve_s) for reserve_s in RESERVES_S]
        self.end_reason = EndReason.CLIENT_LEFT
        """Why whoever reads it stops before its end, if they do."""
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

    def __aiter__(self) -> Speech:
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
        for player in self.players:
            player.take(asked_at, arrived_at, duration_s)


@asynccontextmanager
async def speaking(
    model: ServedModel,
    request: SpeechRequest,
    metrics: Metrics,
    clock: Clock = time.monotonic,
    *,
    batch: bool = False,
    more_text: AsyncIterator[str] | None = None,
) -> AsyncIterator[Speech]:
    """Open an utterance; leaving awaits its abort and counts how it ended."""
    asked_at = clock()
    admitted = False
    try:
        async with model.speak(request, batch=batch, more_text=more_text) as utterance:
            admitted = True
            waited_s = timeline_of(asked_at, utterance.milestones)[ADMIT]
            metrics.opened(model.name, waited_s=waited_s, batch=batch)
            speech = Speech(model, utterance, asked_at, clock, metrics)
            # Nobody hears a file as it is made, and late text is not the server's.
            heard = not batch and more_text is None
            async with _counted(speech, metrics, heard=heard):
                yield speech
    except (InvalidRequest, Overloaded) as refusal:
        if not admitted:
            metrics.rejected(model.name, refusal.code)
        raise


@asynccontextmanager
async def _counted(speech: Speech, metrics: Metrics, *, heard: bool) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:
        _record(speech, metrics, *_ending_of(speech, error), heard=heard)
        raise
    _record(speech, metrics, *_ending_of(speech, None), heard=heard)


def _ending_of(speech: Speech, error: BaseException | None) -> tuple[Outcome, EndReason | None]:
    """How an utterance ended, and why it did before its text."""
    match error:
        case None if speech.complete:
            return Outcome.COMPLETED, None
        case ClientStalled():
            return Outcome.ABORTED, EndReason.CLIENT_STALLED
        case None | asyncio.CancelledError() | ConnectionError():
            return Outcome.ABORTED, speech.end_reason
        case ChunkTimeout():
            return Outcome.FAILED, EndReason.TIMEOUT
        case StageDied():
            return Outcome.FAILED, EndReason.STAGE_DIED
        case _:
            return Outcome.FAILED, EndReason.FAILED


def _record(
    speech: Speech, metrics: Metrics, outcome: Outcome, reason: EndReason | None, *, heard: bool
) -> None:
    model = speech.model
    if speech.ttfp_s is not None:
        metrics.first_pcm(model, speech.ttfp_s)
        for player in speech.players if heard else ():
            metrics.played(model, player.reserve_s, player.underruns, player.still_s)
    if reason is not None:
        metrics.aborted(model, reason)
    metrics.ended(model, outcome, speech.duration_s, speech.rtf)
    figures = {
        "model": model,
        "work_id": speech.request_id,
        "outcome": outcome,
        "reason": reason,
        "audio_s": speech.duration_s,
        "ttfp_s": speech.ttfp_s,
        "rtf": speech.rtf,
        "timeline_s": speech.timeline,
    }
    logger.info("%s after %.2f s of sound", outcome, speech.duration_s, extra=figures)
