"""Metrics of utterances, pictures and transcribed recordings, each from the request to its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from cantata.telemetry.request_record import WorkRecord, note_work

_TTFP_BUCKETS_S = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0)
_RTF_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 5.0)
_DURATION_BUCKETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_QUEUE_BUCKETS_S = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
_UNDERRUN_BUCKETS_S = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Outcome(StrEnum):
    COMPLETED = "completed"
    ABORTED = "aborted"
    """The client cancelled it or went away."""
    FAILED = "failed"


class EndReason(StrEnum):
    CANCELLED = "cancelled"
    """The client cancelled it."""
    CLIENT_LEFT = "client_left"
    CLIENT_STALLED = "client_stalled"
    """The client kept its connection and stopped reading."""
    FAILED = "failed"
    """A stage could not finish it."""
    TIMEOUT = "timeout"
    """A stage sent no chunk, or the client no text, in time."""
    STAGE_DIED = "stage_died"
    QUARANTINED = "quarantined"
    """It ended a stage process for the second time."""


class UtteranceMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        model = ("model",)
        self._running = Gauge(
            "cantata_requests_running", "Utterances open now.", model, registry=registry
        )
        self._ended = {
            outcome: Counter(
                f"cantata_speech_stream_{outcome.value}",
                f"Utterances {text}.",
                model,
                registry=registry,
            )
            for outcome, text in (
                (Outcome.COMPLETED, "that were completed"),
                (Outcome.ABORTED, "whose client cancelled or left"),
            )
        }
        self._failed = Counter(
            "cantata_speech_stream_failed",
            "Utterances that a stage could not finish, by reason.",
            (*model, "reason"),
            registry=registry,
        )
        self._rejected = Counter(
            "cantata_requests_rejected",
            "Requests that were rejected, by error code.",
            (*model, "code"),
            registry=registry,
        )
        self._ttfp = Histogram(
            "cantata_audio_ttfp_seconds",
            "Time from the request to the first PCM (TTFP).",
            model,
            buckets=_TTFP_BUCKETS_S,
            registry=registry,
        )
        self._rtf = Histogram(
            "cantata_audio_rtf",
            "Seconds spent waiting for PCM per second of sound, of completed utterances (RTF).",
            model,
            buckets=_RTF_BUCKETS,
            registry=registry,
        )
        self._duration = Histogram(
            "cantata_audio_duration_seconds",
            "Length of completed utterances in seconds of sound.",
            model,
            buckets=_DURATION_BUCKETS_S,
            registry=registry,
        )
        self._aborts = Counter(
            "cantata_aborts",
            "Utterances that ended before their text did, by reason.",
            (*model, "reason"),
            registry=registry,
        )
        self._queue_wait = Histogram(
            "cantata_queue_wait_seconds",
            "How long admitted utterances waited for a place.",
            (*model, "kind"),
            buckets=_QUEUE_BUCKETS_S,
            registry=registry,
        )
        self._sound = Counter(
            "cantata_audio_seconds", "Seconds of sound generated.", model, registry=registry
        )
        self._init_playback(registry)

    def _init_playback(self, registry: CollectorRegistry) -> None:
        labels = ("model", "reserve_ms")
        self._underruns = Counter(
            "cantata_audio_underruns",
            "Underruns of simulated players, by the sound they buffer before they start.",
            labels,
            registry=registry,
        )
        self._still = Histogram(
            "cantata_audio_underrun_seconds",
            "How long a simulated player stalled per utterance.",
            labels,
            buckets=_UNDERRUN_BUCKETS_S,
            registry=registry,
        )
        self._continuous = Counter(
            "cantata_audio_continuous",
            "Utterances that a simulated player played without a gap.",
            labels,
            registry=registry,
        )

    def start(self, model: str, *, waited_s: float, batch: bool) -> None:
        """An utterance was admitted after this wait; `finish` follows."""
        self._running.labels(model).inc()
        self._queue_wait.labels(model, "batch" if batch else "live").observe(waited_s)

    def observe_first_pcm(self, model: str, ttfp_s: float) -> None:
        """The first samples of an utterance have arrived."""
        self._ttfp.labels(model).observe(ttfp_s)

    def add_sound(self, model: str, duration_s: float) -> None:
        self._sound.labels(model).inc(duration_s)

    def observe_playback(
        self, model: str, reserve_s: float, underruns: int, still_s: float
    ) -> None:
        """How a player that begins with `reserve_s` of sound plays an utterance."""
        labels = (model, str(round(reserve_s * 1000)))
        self._underruns.labels(*labels).inc(underruns)
        self._still.labels(*labels).observe(still_s)
        self._continuous.labels(*labels).inc(not underruns)

    def count_abort(self, model: str, reason: EndReason) -> None:
        """An utterance ended before its text did."""
        self._aborts.labels(model, reason).inc()

    def finish(
        self,
        model: str,
        outcome: Outcome,
        duration_s: float = 0.0,
        rtf: float | None = None,
        reason: EndReason | None = None,
    ) -> None:
        """An utterance is over; duration and RTF are recorded only if it was completed."""
        self._running.labels(model).dec()
        if outcome is Outcome.FAILED:
            self._failed.labels(model, reason or EndReason.FAILED).inc()
        else:
            self._ended[outcome].labels(model).inc()
        if outcome is Outcome.COMPLETED:
            self._duration.labels(model).observe(duration_s)
            if rtf is not None:
                self._rtf.labels(model).observe(rtf)

    def count_rejection(self, model: str, code: str) -> None:
        """A request was rejected before it became an utterance, an answer or a picture."""
        self._rejected.labels(model, code).inc()


_SECONDS_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0)


class PictureMetrics:
    """Pictures of every model; rejected requests are counted with all others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        model = ("model",)
        self._drawing = Gauge(
            "cantata_pictures_drawing", "Pictures being drawn.", model, registry=registry
        )
        self._ended = {
            outcome: Counter(
                f"cantata_pictures_{outcome.value}",
                f"Pictures {text}.",
                labels,
                registry=registry,
            )
            for outcome, text, labels in (
                (Outcome.COMPLETED, "that were completed", model),
                (Outcome.ABORTED, "whose client cancelled or left, by reason", (*model, "reason")),
                (Outcome.FAILED, "that a stage could not finish, by reason", (*model, "reason")),
            )
        }
        self._seconds = Histogram(
            "cantata_picture_seconds",
            "Time from the request to the picture.",
            model,
            buckets=_SECONDS_BUCKETS,
            registry=registry,
        )
        self._steps = Counter(
            "cantata_picture_steps",
            "Denoising steps of all pictures, as the stages report them.",
            model,
            registry=registry,
        )

    def start(self, model: str) -> None:
        """A picture was admitted; `finish` follows."""
        self._drawing.labels(model).inc()

    def count_steps(self, model: str, steps: int) -> None:
        self._steps.labels(model).inc(steps)

    def finish(
        self, model: str, outcome: Outcome, reason: EndReason | None, seconds: float
    ) -> None:
        """A picture is over; its time is recorded only if it was completed."""
        self._drawing.labels(model).dec()
        if outcome is Outcome.COMPLETED:
            self._ended[outcome].labels(model).inc()
            self._seconds.labels(model).observe(seconds)
        else:
            self._ended[outcome].labels(model, reason or EndReason.FAILED).inc()


class TranscriptionMetrics:
    """Recordings of every model; rejected requests are counted with all others."""

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
        """Count one recording. `seconds`: of the sound that was read; asked at the end."""
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
