"""Asking the server under test over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

READY_DEADLINE_S = 180.0
STOP_DEADLINE_S = 30.0
POLL_S = 0.1


@dataclass(frozen=True)
class Server:
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of every request."""

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", headers=self.headers, timeout=60.0)

    def speech(self, **fields: object) -> httpx.Response:
        url = f"{self.url}/v1/audio/speech"
        return httpx.post(url, json=fields, headers=self.headers, timeout=120.0)

    def is_idle(self) -> bool:
        """Whether no request runs and no stage holds anything."""
        return self.gauge("cantata_requests_running") == self.gauge("cantata_stage_held") == 0

    def gauge(self, name: str) -> float:
        """The metric's value, summed over its labels."""
        values = self._values(name)
        assert values, f"/metrics has no {name}"
        return sum(values)

    def _values(self, name: str) -> list[float]:
        lines = self.get("/metrics").text.splitlines()
        found = [line for line in lines if line.startswith((name + " ", name + "{"))]
        return [float(line.rsplit(" ", 1)[1]) for line in found]


def wait_until(condition: Callable[[], bool], deadline_s: float, what: str) -> None:
    """Polls `condition`; fails with `what` when the deadline passes first."""
    give_up = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up:
            raise AssertionError(f"not within {deadline_s:g} s: {what}")
        time.sleep(POLL_S)
