"""A measured utterance of one model, for HTTP and WebSocket."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cantata.api.request_timer import Clock, RequestTimer, record_outcome, track_admission
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import ServedModel, SpeechChunk, Utterance
from cantata.metrics import Metrics


class MeasuredUtterance(RequestTimer):
    """An open utterance and its measurements."""

    def __init__(
        self,
        model: ServedModel,
        utterance: Utterance,
        asked_at: float,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        super().__init__(model.name, model.sample_rate, utterance, asked_at, metrics)
        self._chunks = aiter(utterance)
        self._started = False
        self._clock = clock

    def __aiter__(self) -> MeasuredUtterance:
        return self

    async def __anext__(self) -> SpeechChunk:
        """The next chunk, never without samples as well as words."""
        asked_at = self._clock() if self._started else self.asked_at
        self._started = True
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
        self._take(chunk, asked_at, now)
        return chunk


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
    speaking = model.speak(request, batch=batch, more_text=more_text)
    async with track_admission(model.name, speaking, asked_at, metrics, batch=batch) as utterance:
        measured = MeasuredUtterance(model, utterance, asked_at, clock, metrics)
        # Files have no listener, and late text is not the server's delay.
        is_live = not batch and more_text is None
        async with record_outcome(measured, metrics, is_live=is_live):
            yield measured
