"""Where the time before an utterance's first sound went, in the form that clients get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cantata.contract.data.chunks import Milestone

SERVER_TIMING_HEADER = "server-timing"
"""W3C Server Timing: browsers show it with the request and expose it to scripts."""

Timeline = Mapping[str, float]
"""Seconds by step, in the order in which they were taken; together they are the whole."""


def build_timeline(began_s: float, milestones: Iterable[Milestone]) -> dict[str, float]:
    """Seconds that each step took, from the end of the one before it."""
    timeline: dict[str, float] = {}
    for milestone in milestones:
        timeline[milestone.step] = milestone.at_s - began_s
        began_s = milestone.at_s
    return timeline


def server_timing(timeline: Timeline) -> str:
    """The header's value; durations are in milliseconds."""
    return ", ".join(f"{step};dur={seconds * 1000:.1f}" for step, seconds in timeline.items())
