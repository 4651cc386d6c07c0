"""Metrics of spoken conversations: how many are open, and what they are doing."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge


class ConversationMetrics:
    """Counts of what is in progress; all zero when idle.

    Args:
        registry: takes the metrics.
    """

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
