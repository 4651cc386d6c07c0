"""Prometheus metrics, one registry per app: two apps in one process share nothing."""

from cantata.metrics.registry import CONTENT_TYPE, Metrics
from cantata.metrics.requests import EndReason, Outcome

__all__ = ["CONTENT_TYPE", "EndReason", "Metrics", "Outcome"]
