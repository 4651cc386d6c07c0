"""One utterance of one model, measured: what HTTP and WebSocket share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from cantata.contract.errors import InvalidRequest, Overloaded
from cantata.contract.request import SpeechRequest
from cantata.contract.service import ServedModel, SpeechChunk, Utterance
from cantata.metrics import Metrics, Outcome

Clock = Callable[[], float]
"""Monotonic seconds."""


class Speech:
    """An open utterance and its measurements."""

    def __init__(self, model: ServedModel, utterance: Utterance, asked_at: float, clock: Clock):
        self.request_id = utterance.request_id
        self.samples = 0
        """Made so far, per channel."""
        self.ttfp_s: float | None = None
        """From asking to the first PCM."""
        self.waited_s = 0.0
        """Spent waiting for PCM; time in which the listener held it back is not in it."""
        self.complete = False
        self._sample_rate = model.sample_rate
        self._chunks = aiter(utterance)
        self._asked_at = asked_at
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
        asked_at = self._clock() if self._begun else self._asked_at
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
            self.ttfp_s = now - self._asked_at
        self.samples += len(chunk.samples)
        return chunk


@asynccontextmanager
async def speaking(
    model: ServedModel,
    request: SpeechRequest,
    metrics: Metrics,
    clock: Clock = time.monotonic,
    *,
    batch: bool = False,
) -> AsyncIterator[Speech]:
    """Open an utterance; leaving awaits its abort and counts how it ended."""
    asked_at = clock()
    admitted = False
    try:
        async with model.speak(request, batch=batch) as utterance:
            admitted = True
            metrics.opened(model.name)
            async with _counted(
                Speech(model, utterance, asked_at, clock), model, metrics
            ) as speech:
                yield speech
    except (InvalidRequest, Overloaded) as refusal:
        if not admitted:
            metrics.rejected(model.name, refusal.code)
        raise


@asynccontextmanager
async def _counted(speech: Speech, model: ServedModel, metrics: Metrics) -> AsyncIterator[Speech]:
    outcome = Outcome.FAILED
    try:
        yield speech
        outcome = Outcome.COMPLETED if speech.complete else Outcome.ABORTED
    except (asyncio.CancelledError, ConnectionError):
        outcome = Outcome.ABORTED
        raise
    finally:
        if speech.ttfp_s is not None:
            metrics.first_pcm(model.name, speech.ttfp_s)
        metrics.ended(model.name, outcome, speech.duration_s, speech.rtf)
