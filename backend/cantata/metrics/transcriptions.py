"""Metrics of recordings that are transcribed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge

from cantata.telemetry.request_record import WorkRecord, note_work


class TranscriptionMetrics:
    """Recordings of every model; rejected requests are counted with all others.

    Args:
        registry: takes the metrics.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        model = ("model",)
        self._running = Gauge(
            "cantata_transcriptions_running",
            "Recordings being transcribed.",
            model,
            registry=registry,
        )
        self._ended = Counter(
            "cantata_transcriptions",
            "Recordings whose transcription ended, by outcome.",
            (*model, "outcome"),
            registry=registry,
        )
        self._seconds = Counter(
            "cantata_transcribed_seconds",
            "Seconds of sound in recordings that were transcribed.",
            model,
            registry=registry,
        )

        self._verified = Counter(
            "cantata_speech_words_verified",
            "Words of utterances that were verified, by whether they were heard.",
            (*model, "result"),
            registry=registry,
        )

    def count_verified(self, model: str, words: int, missing: int, extra: int) -> None:
        """An utterance of a model was heard: so many words, of which some are missing, and some
        beside them."""
        for result, number in (("heard", words - missing), ("missing", missing), ("extra", extra)):
            self._verified.labels(model, result).inc(number)

    @contextmanager
    def track(self, model: str, seconds: Callable[[], float]) -> Iterator[None]:
        """Count one recording.

        Args:
            model: its name.
            seconds: of the sound that was read; asked at the end.
        """
        outcome, asked_at = "failed", time.monotonic()
        self._running.labels(model).inc()
        try:
            yield
            outcome = "completed"
        except asyncio.CancelledError:
            outcome = "aborted"
            raise
        finally:
            self._running.labels(model).dec()
            self._ended.labels(model, outcome).inc()
            heard_s = seconds()
            self._seconds.labels(model).inc(heard_s)
            reason = None if outcome == "completed" else outcome
            ended_at = time.monotonic()
            note_work(
                WorkRecord(
                    "transcribe", model, "", outcome, reason, asked_at, ended_at, sound_s=heard_s
                )
            )
