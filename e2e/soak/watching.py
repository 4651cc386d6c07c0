"""The server as its operator sees it: stages, readiness, metrics, what its processes hold."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

LOOK_S = 0.5
_RETRY_S = 0.02
_RECOVERY_S = 120.0
_SETTLING_S = 60.0
_HELD = ("cantata_stage_held", "cantata_slots_in_use", "cantata_requests_running")


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the server's processes hold while it is idle."""

    held: float
    """The sum of everything that is zero when idle."""
    descriptors: int
    """Open file descriptors of the api."""
    memory_bytes: Mapping[str, int]
    """Resident memory by process."""


class Watch:
    """Polls one server throughout: `/health` and `/metrics` answer whatever happens."""

    def __init__(self, url: str, pid: int) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=10.0)
        self._api = psutil.Process(pid)
        self.answers: list[tuple[float, float]] = []
        """When each answer arrived, and how long it took."""

    async def stages(self) -> dict[str, int]:
        """Process id of each stage."""
        health = await self._get("/health")
        stages: list[dict[str, Any]] = health.json()["stages"]
        return {stage["stage"]: stage["pid"] for stage in stages}

    async def gauge(self, *names: str) -> float:
        """The sum of these metrics."""
        text = (await self._get("/metrics")).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            if family.name in names
            for sample in family.samples
        )

    async def keep_looking(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self._get("/health")
            await self._get("/metrics")
            await asyncio.sleep(LOOK_S)

    async def is_ready(self) -> bool:
        """Whether it accepts requests."""
        return (await self._get("/ready")).status_code == httpx.codes.OK

    async def until_ready(self) -> None:
        """Raises TimeoutError if the server does not recover."""
        async with asyncio.timeout(_RECOVERY_S):
            while not await self.is_ready():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def footprint(self) -> Footprint:
        """What is held after all clients have left; waits for it."""
        with contextlib.suppress(TimeoutError):  # the report says what is held even then
            async with asyncio.timeout(_SETTLING_S):
                while await self.gauge(*_HELD):  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_S)
        pids = {"api": self._api.pid, **await self.stages()}
        memory = {name: psutil.Process(pid).memory_info().rss for name, pid in pids.items()}
        return Footprint(await self.gauge(*_HELD), self._api.num_fds(), memory)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def _get(self, path: str) -> httpx.Response:
        clock = asyncio.get_running_loop().time
        asked_s = clock()
        while True:
            try:
                response = await self._http.get(path)
            except httpx.TransportError:  # such as no descriptor: the time includes retries
                await asyncio.sleep(_RETRY_S)
            else:
                self.answers.append((clock(), clock() - asked_s))
                return response
