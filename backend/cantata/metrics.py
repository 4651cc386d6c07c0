"""Prometheus metrics, one registry per app: two apps in one process share nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cantata.contract.service import AdmissionReport, StageReport

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TTFP_BUCKETS_S = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0)
_RTF_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.5, 2.0, 5.0)
_DURATION_BUCKETS_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)


class Outcome(StrEnum):
    """How an admitted utterance ended."""

    COMPLETED = "completed"
    ABORTED = "aborted"
    """The caller cancelled it or went away."""
    FAILED = "failed"


class Metrics:
    """What one app measures."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        model = ("model",)
        self._running = Gauge(
            "cantata_requests_running", "Utterances open now.", model, registry=self._registry
        )
        self._ended = {
            outcome: Counter(
                f"cantata_speech_stream_{outcome.value}",
                f"Utterances that {text}.",
                model,
                registry=self._registry,
            )
            for outcome, text in (
                (Outcome.COMPLETED, "were spoken to the end"),
                (Outcome.ABORTED, "their caller cancelled or left"),
                (Outcome.FAILED, "a stage could not finish"),
            )
        }
        self._rejected = Counter(
            "cantata_requests_rejected",
            "Requests refused before anything was made.",
            (*model, "code"),
            registry=self._registry,
        )
        self._ttfp = Histogram(
            "cantata_audio_ttfp_seconds",
            "From asking for an utterance to its first PCM.",
            model,
            buckets=_TTFP_BUCKETS_S,
            registry=self._registry,
        )
        self._rtf = Histogram(
            "cantata_audio_rtf",
            "Seconds spent waiting for PCM per second of sound, of completed utterances.",
            model,
            buckets=_RTF_BUCKETS,
            registry=self._registry,
        )
        self._duration = Histogram(
            "cantata_audio_duration_seconds",
            "Seconds of sound of completed utterances.",
            model,
            buckets=_DURATION_BUCKETS_S,
            registry=self._registry,
        )

    def opened(self, model: str) -> None:
        """An utterance was admitted; `ended` follows."""
        self._running.labels(model).inc()

    def first_pcm(self, model: str, ttfp_s: float) -> None:
        """Its first samples arrived."""
        self._ttfp.labels(model).observe(ttfp_s)

    def ended(
        self, model: str, outcome: Outcome, duration_s: float = 0.0, rtf: float | None = None
    ) -> None:
        """It is over; duration and RTF are recorded only for what was completed."""
        self._running.labels(model).dec()
        self._ended[outcome].labels(model).inc()
        if outcome is Outcome.COMPLETED:
            self._duration.labels(model).observe(duration_s)
            if rtf is not None:
                self._rtf.labels(model).observe(rtf)

    def rejected(self, model: str, code: str) -> None:
        """A request never became an utterance."""
        self._rejected.labels(model, code).inc()

    def render(
        self, reports: Sequence[StageReport], admissions: Mapping[str, AdmissionReport]
    ) -> bytes:
        """Everything in Prometheus' text format, the service as it is at this scrape.

        The service's figures live for one scrape: a stage that is gone leaves no stale series.

        Args:
            reports: one per stage process.
            admissions: by model.
        """
        service = CollectorRegistry()
        service.register(_ServiceCollector(reports, admissions))
        return generate_latest(self._registry) + generate_latest(service)


class _ServiceCollector(Collector):
    """The service's state as gauges."""

    def __init__(
        self, reports: Sequence[StageReport], admissions: Mapping[str, AdmissionReport]
    ) -> None:
        self._reports = reports
        self._admissions = admissions

    def collect(self) -> Iterable[Metric]:
        return [*self._admission(), *self._stages()]

    def _admission(self) -> Iterable[Metric]:
        gauges = {
            name: GaugeMetricFamily(f"cantata_admission_{name}", text, labels=["model"])
            for name, text in (
                ("places", "Requests that are played without a gap, as measured."),
                ("running", "Requests that hold a place."),
            )
        }
        waiting = GaugeMetricFamily(
            "cantata_requests_waiting", "Requests that wait for a place.", labels=["model", "kind"]
        )
        refused = CounterMetricFamily(
            "cantata_admission_refused",
            "Requests that got no place, by reason.",
            labels=["model", "reason"],
        )
        for model, report in self._admissions.items():
            gauges["places"].add_metric([model], report.places)
            gauges["running"].add_metric([model], report.running)
            waiting.add_metric([model, "live"], report.waiting)
            waiting.add_metric([model, "batch"], report.waiting_batch)
            for reason, count in report.refused.items():
                refused.add_metric([model, reason], count)
        return [*gauges.values(), waiting, refused]

    def _stages(self) -> Iterable[Metric]:
        labels = ["model", "stage"]
        alive = GaugeMetricFamily("cantata_stage_alive", "1 while it runs.", labels=labels)
        startup = GaugeMetricFamily(
            "cantata_stage_startup_seconds", "From spawn to readiness.", labels=labels
        )
        rss = GaugeMetricFamily("cantata_stage_rss_bytes", "Resident memory.", labels=labels)
        held = GaugeMetricFamily(
            "cantata_stage_held", "What a stage holds; zero when idle.", labels=[*labels, "what"]
        )
        for report in self._reports:
            names = [report.model, report.stage]
            alive.add_metric(names, float(report.alive))
            startup.add_metric(names, report.startup_s)
            rss.add_metric(names, report.rss_bytes)
            for what, count in report.counts.items():
                held.add_metric([*names, what], count)
        return [alive, startup, rss, held]
