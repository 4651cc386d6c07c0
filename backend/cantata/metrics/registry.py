"""All metrics of one app, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Gauge, disable_created_metrics, generate_latest

from cantata.contract.service import AdmissionReport, ReplicaReport, StageReport
from cantata.metrics.requests import PictureMetrics, TranscriptionMetrics, UtteranceMetrics
from cantata.metrics.service import ServiceCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ConversationMetrics:
    """Gauges of spoken conversations; all zero when idle. `registry`: takes the metrics."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sessions = Gauge(
            "cantata_realtime_sessions", "Open sessions of /v1/realtime.", registry=registry
        )
        self.responses = Gauge(
            "cantata_realtime_responses",
            "Answers being generated in realtime sessions.",
            registry=registry,
        )
        self.transcriptions = Gauge(
            "cantata_realtime_transcriptions",
            "Users' utterances being transcribed.",
            registry=registry,
        )


# The time at which each series began is a quarter of the text, and nothing reads it.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(UtteranceMetrics):
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        super().__init__(self._registry)
        self.conversations = ConversationMetrics(self._registry)
        self.pictures = PictureMetrics(self._registry)
        self.transcriptions = TranscriptionMetrics(self._registry)

    def render(
        self,
        reports: Sequence[StageReport],
        admissions: Mapping[str, AdmissionReport],
        replicas: Sequence[ReplicaReport] = (),
    ) -> bytes:
        """All metrics in Prometheus' text format, with the service's state at this scrape.

        The service's figures live for one scrape: a dead stage leaves no stale series.

        Args:
            replicas: one per replica, if the stages are not on this machine.
        """
        service = CollectorRegistry()
        service.register(ServiceCollector(reports, admissions, replicas))
        return generate_latest(self._registry) + generate_latest(service)
