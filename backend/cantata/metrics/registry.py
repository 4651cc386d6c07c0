"""All metrics of one app, in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest

from cantata.contract.service import AdmissionReport, ReplicaReport, StageReport
from cantata.metrics.conversations import ConversationMetrics
from cantata.metrics.pictures import PictureMetrics
from cantata.metrics.service import ServiceCollector
from cantata.metrics.transcriptions import TranscriptionMetrics
from cantata.metrics.utterances import UtteranceMetrics

# The time at which each series began is a quarter of the text, and nothing reads it.
disable_created_metrics()  # type: ignore[no-untyped-call]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics(UtteranceMetrics):
    """The metrics of one app."""

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
            reports: one per stage process.
            admissions: by model.
            replicas: one per replica, if the stages are not on this machine.
        """
        service = CollectorRegistry()
        service.register(ServiceCollector(reports, admissions, replicas))
        return generate_latest(self._registry) + generate_latest(service)
