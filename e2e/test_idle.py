"""An idle server is idle, also after it has spoken: by CPU time, unless waking up alone takes
long: on some virtual machines it is 0.7 ms at times."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cantata.client import connect
from process_tree import find_descendants

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
SLOW_WAKER = 0.0015
"""What a process uses that wakes up ten times a second, where the machine itself is disturbed: 0.15
ms each time."""
WAKER = "import time\nwhile True: time.sleep(0.1)"


def processes(url: str) -> list[psutil.Process]:
    """The server's process and what it has started."""
    port = url.rsplit(":", 1)[1]
    (server,) = find_descendants(f"--port {port}")
    return [server, *server.children(recursive=True)]


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of all its threads: of the scheduler's clock, since the kernel's ticks miss
    threads that wake for microseconds."""
    folder = Path("/proc") / str(process.pid) / "task"
    return sum(int((t / "schedstat").read_text().split()[0]) for t in folder.iterdir()) / 1e9


@contextmanager
def running_waker() -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", WAKER]) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


async def watch(watched: list[psutil.Process]) -> dict[psutil.Process, float]:
    """Each process's share of a core."""
    before = {process: cpu_s(process) for process in watched}
    began_s = time.monotonic()
    await asyncio.sleep(WATCHED_S)
    seconds = time.monotonic() - began_s
    return {process: (cpu_s(process) - used) / seconds for process, used in before.items()}


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
    with running_waker() as waker:
        for _ in range(TIMES):
            used = await watch([waker, *watched])
            waking = used.pop(waker)
            if sum(used.values()) < MAX_SHARE:
                return
    if waking > SLOW_WAKER:
        pytest.skip(f"waking up takes {100 * waking:.2f} ms of CPU on this machine")
    pytest.fail(f"{used}")
