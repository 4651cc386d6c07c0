"""An idle server is idle, also after it has spoken: by CPU time, which other processes' load
hardly raises."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import psutil
import pytest

from cantata.client import connect

from .conftest import GIVEN_URL
from .server import Server

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.level3,
    pytest.mark.skipif(bool(GIVEN_URL), reason="the processes of a given server are not known"),
]

WATCHED_S = 15.0
TIMES = 4
"""Other processes that empty the caches make each wake-up longer: the quietest time counts."""
MAX_SHARE = 0.01
"""Most of a core that all processes together may use."""


def processes(url: str) -> list[psutil.Process]:
    """The server's process and what it has started."""
    own, port = psutil.Process().children(recursive=True), url.rsplit(":", 1)[1]
    (server,) = (process for process in own if f"--port {port}" in " ".join(process.cmdline()))
    return [server, *server.children(recursive=True)]


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of all its threads: of the scheduler's clock, since the kernel's ticks miss
    threads that wake for microseconds."""
    folder = Path("/proc") / str(process.pid) / "task"
    return sum(int((t / "schedstat").read_text().split()[0]) for t in folder.iterdir()) / 1e9


async def watch(watched: list[psutil.Process]) -> dict[str, float]:
    """Each process's share of a core."""
    before = {process: cpu_s(process) for process in watched}
    began_s = time.monotonic()
    await asyncio.sleep(WATCHED_S)
    seconds = time.monotonic() - began_s
    return {p.cmdline()[0]: (cpu_s(p) - used) / seconds for p, used in before.items()}


async def speak(url: str) -> None:
    """WHY few at a time: on a busy machine, more would be rejected."""
    async with connect(url) as session:
        for _ in range(3):
            async for _ in session.speak("Nothing in the garden had been touched."):
                pass


async def test_it_uses_a_hundredth_of_a_core_after_load(server: Server) -> None:
    await asyncio.gather(speak(server.url), speak(server.url))
    watched = processes(server.url)
    assert len(watched) >= 3
    for _ in range(TIMES):
        shares = await watch(watched)
        if sum(shares.values()) < MAX_SHARE:
            return
    pytest.fail(f"{shares}")
