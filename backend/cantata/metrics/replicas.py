"""A server's view of its replicas, as metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from cantata.contract.service import ReplicaReport


def replica_metrics(reports: Sequence[ReplicaReport]) -> Iterable[Metric]:
    """One series per replica."""
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
