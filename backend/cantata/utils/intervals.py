"""Periodic work at common moments: tasks that tick together wake an idle process once."""

from __future__ import annotations

import asyncio


def seconds_to_next_interval(interval_s: float) -> float:
    """Seconds until the loop's clock reaches the next multiple of an interval."""
    return interval_s - asyncio.get_running_loop().time() % interval_s
