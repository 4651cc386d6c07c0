"""Start-up times, in multiples of `python -c "import torch"` on the same machine.

Run it while nothing else does. A sentence said by `cantata say` is measured whole, with the end of
its process; its first sound comes earlier.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
import psutil

from cantata_bench.server import READY_DEADLINE_S, running_server, stage_gauges

_TALKER = "talker"


@dataclass(frozen=True, slots=True)
class Took:
    """One thing that was measured."""

    what: str
    wall_s: float
    cpu_s: float | None
    """Of it and its processes; None: not counted."""


def measure_startup(folder: Path, repeats: int = 3) -> list[Took]:
    """Import torch, say a sentence, serve, and restart the first stage.

    Args:
        folder: takes the sound and the server's log.
        repeats: of everything but the server; medians are reported.

    Returns:
        `import torch` first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    say = ["-m", "cantata", "say", "Hello.", "-o", str(folder / "hello.wav")]
    found = [
        _median("import torch", lambda: _run(["-c", "import torch"]), repeats),
        _median('cantata say "Hello.", whole', lambda: _run(say), repeats),
    ]
    with running_server(folder / "startup.log") as server:
        cpu_s = sum(
            sum(process.cpu_times()[:2])
            for process in (
                psutil.Process(server.pid),
                *psutil.Process(server.pid).children(recursive=True),
            )
        )
        found.append(Took("cantata serve, ready", server.startup_s, cpu_s))
        found.append(Took("a killed stage, back", _restart(server.url, server.pid), None))
    return found


def startup_table(found: list[Took]) -> str:
    """Markdown: seconds, and how many times the first one's."""
    unit = found[0].wall_s
    lines = ["| | s | CPU s | x `import torch` |", "|-|-|-|-|"]
    lines += [
        f"| {took.what} | {took.wall_s:.1f} | "
        f"{'' if took.cpu_s is None else f'{took.cpu_s:.1f}'} | {took.wall_s / unit:.1f} |"
        for took in found
    ]
    return "\n".join(lines)


def _median(what: str, run: Callable[[], tuple[float, float]], repeats: int) -> Took:
    runs = [run() for _ in range(repeats)]
    return Took(what, median(wall for wall, _ in runs), median(cpu for _, cpu in runs))


def _run(arguments: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of a Python process."""

    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    began_s, cpu_before_s = time.monotonic(), cpu_s()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.monotonic() - began_s, cpu_s() - cpu_before_s


def _restart(url: str, server_pid: int) -> float:
    """Seconds from killing the talker until the server is ready again."""
    (talker,) = (
        process
        for process in psutil.Process(server_pid).children(recursive=True)
        if process.cmdline()[:1] == [f"cantata:{_TALKER}:0"]
    )
    began_s = time.monotonic()
    os.kill(talker.pid, signal.SIGKILL)
    was_down = False
    while time.monotonic() - began_s < READY_DEADLINE_S:
        alive = stage_gauges(url, "cantata_stage_alive")[_TALKER]
        was_down = was_down or not alive
        if was_down and httpx.get(f"{url}/ready", timeout=5).status_code == httpx.codes.OK:
            return time.monotonic() - began_s
        time.sleep(0.02)
    raise RuntimeError("the stage did not come back")
