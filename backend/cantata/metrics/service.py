"""The state of the service, its replicas and its stages' steps, as they are at one scrape."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from cantata.contract.process.messages import Histogram
from cantata.contract.service import AdmissionReport, ReplicaReport, StageReport

_MODEL_GAUGES = {
    "cantata_admission_places": "Requests that can play without a gap, by measured step times.",
    "cantata_admission_running": "Requests that hold a place.",
    "cantata_slots": "Requests that the stages have memory for.",
    "cantata_slots_in_use": "Requests that the stages have memory in use for.",
}


def collect_replica_metrics(reports: Sequence[ReplicaReport]) -> Iterable[Metric]:
    if not reports:
        return []
    up = GaugeMetricFamily(
        "cantata_replica_up",
        "1 while the replica is connected and accepts requests.",
        labels=["replica"],
    )
    streams = GaugeMetricFamily(
        "cantata_replica_streams", "This server's open requests.", labels=["replica"]
    )
    lost = CounterMetricFamily(
        "cantata_replica_lost", "How often the link was lost.", labels=["replica"]
    )
    labels = ["replica", "model"]
    places = GaugeMetricFamily(
        "cantata_replica_places", "Requests that can play without a gap.", labels=labels
    )
    running = GaugeMetricFamily(
        "cantata_replica_running", "Requests of all servers that hold a place.", labels=labels
    )
    routed = CounterMetricFamily(
        "cantata_replica_routed", "Requests that this server has sent.", labels=labels
    )
    for report in reports:
        up.add_metric([report.address], float(report.ready and not report.draining))
        streams.add_metric([report.address], report.streams)
        lost.add_metric([report.address], report.lost)
        for model, admission in report.admissions.items():
            places.add_metric([report.address, model], admission.places)
            running.add_metric([report.address, model], admission.running)
        for model, count in report.routed.items():
            routed.add_metric([report.address, model], count)
    return [up, streams, lost, places, running, routed]


class ServiceCollector(Collector):
    """Turns the reports of stages, admission and replicas into metrics.

    Args:
        reports: one per stage process; if a stage host runs any of them, the stages' series have a
            label for it, empty for those where their pipeline runs.
        replicas: one per replica, if the stages are not on this machine; then their series have a
            label for it.
    """

    def __init__(
        self,
        reports: Sequence[StageReport],
        admissions: Mapping[str, AdmissionReport],
        replicas: Sequence[ReplicaReport] = (),
    ) -> None:
        self._reports = reports
        self._admissions = admissions
        self._replicas = replicas
        self._has_hosts = any(report.host for report in reports)
        further = {"replica": bool(replicas), "host": self._has_hosts}
        self._stage_labels = ["model", "stage", *(name for name, used in further.items() if used)]

    def collect(self) -> Iterable[Metric]:
        """All metric families; a dead stage has no series."""
        return [
            *self._collect_admission(),
            *self._collect_stages(),
            *self._collect_steps(),
            *self._reuse(),
            *collect_replica_metrics(self._replicas),
        ]

    def _list_label_values(self, report: StageReport) -> list[str]:
        names = [report.model, report.stage]
        names += [report.replica] if self._replicas else []
        return names + ([report.host] if self._has_hosts else [])

    def _collect_admission(self) -> Iterable[Metric]:
        gauges = {
            name: GaugeMetricFamily(name, text, labels=["model"])
            for name, text in _MODEL_GAUGES.items()
        }
        waiting = GaugeMetricFamily(
            "cantata_requests_waiting", "Requests that wait for a place.", labels=["model", "kind"]
        )
        admitted = CounterMetricFamily(
            "cantata_admission_admitted", "Requests that got a place.", labels=["model", "kind"]
        )
        refused = CounterMetricFamily(
            "cantata_admission_refused",
            "Requests that got no place, by reason.",
            labels=["model", "reason"],
        )
        quarantined = CounterMetricFamily(
            "cantata_requests_quarantined",
            "Requests that are rejected because they ended a stage process or a replica twice.",
            labels=["model"],
        )
        for model, report in self._admissions.items():
            quarantined.add_metric([model], report.quarantined)
            values = (report.places, report.running, report.slots, report.slots_in_use)
            for gauge, value in zip(gauges.values(), values, strict=True):
                gauge.add_metric([model], value)
            waiting.add_metric([model, "live"], report.waiting)
            waiting.add_metric([model, "batch"], report.waiting_batch)
            for kind, count in report.admitted.items():
                admitted.add_metric([model, kind], count)
            for reason, count in report.refused.items():
                refused.add_metric([model, reason], count)
        return [*gauges.values(), waiting, admitted, refused, quarantined]

    def _collect_stages(self) -> Iterable[Metric]:
        labels = self._stage_labels
        alive = GaugeMetricFamily(
            "cantata_stage_alive", "1 while the stage's process runs.", labels=labels
        )
        unloaded = GaugeMetricFamily(
            "cantata_stage_unloaded",
            "1 while the stage's process is ended because nobody uses the model.",
            labels=labels,
        )
        startup = GaugeMetricFamily(
            "cantata_stage_startup_seconds",
            "How long the stage took from its process's start until it was ready.",
            labels=labels,
        )
        rss = GaugeMetricFamily(
            "cantata_stage_rss_bytes", "Resident memory of the stage's process.", labels=labels
        )
        state = GaugeMetricFamily(
            "cantata_stage_state_bytes",
            "Memory of the streaming state of all slots, for stages that report it.",
            labels=labels,
        )
        held = GaugeMetricFamily(
            "cantata_stage_held", "What a stage holds; zero when idle.", labels=[*labels, "what"]
        )
        restarts = CounterMetricFamily(
            "cantata_stage_restarts",
            "Restarts of the stage's process, including failed attempts.",
            labels=labels,
        )
        for report in self._reports:
            names = self._list_label_values(report)
            restarts.add_metric(names, report.restarts)
            alive.add_metric(names, float(report.alive))
            unloaded.add_metric(names, float(report.unloaded))
            startup.add_metric(names, report.startup_s)
            rss.add_metric(names, report.rss_bytes)
            if report.state_bytes:
                state.add_metric(names, report.state_bytes)
            for what, count in report.counts.items():
                held.add_metric([*names, what], count)
        return [alive, unloaded, startup, rss, state, held, restarts]

    def _collect_steps(self) -> Iterable[Metric]:
        labels = self._stage_labels
        seconds = HistogramMetricFamily(
            "cantata_stage_step_seconds", "How long a stage's steps take.", labels=labels
        )
        batch = HistogramMetricFamily(
            "cantata_stage_batch_size",
            "Requests that a step produced output for; a step that only reads prompts counts none.",
            labels=labels,
        )
        for report in self._reports:
            if report.steps is not None:
                names = self._list_label_values(report)
                _add(seconds, names, report.steps.seconds)
                _add(batch, names, report.steps.batch)
        return [seconds, batch]

    def _reuse(self) -> Iterable[Metric]:
        labels = self._stage_labels
        counters = {
            "encodes": "Inputs that the stage computed.",
            "hits": "Requests whose result was in the stage's cache.",
            "joined": "Requests that shared a computation with another request.",
        }
        families = {
            name: CounterMetricFamily(f"cantata_stage_{name}", text, labels=labels)
            for name, text in counters.items()
        }
        kept = GaugeMetricFamily(
            "cantata_stage_kept_bytes", "Size of the stage's cache of results.", labels=labels
        )
        for report in self._reports:
            if report.reuse is not None:
                names = self._list_label_values(report)
                for name, family in families.items():
                    family.add_metric(names, getattr(report.reuse, name))
                kept.add_metric(names, report.reuse.kept_bytes)
        return [*families.values(), kept]


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Histogram) -> None:
    bounds = map(floatToGoString, (*histogram.bounds, math.inf))
    buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
    family.add_metric(labels, buckets, histogram.total)
