"""Start-up times, in multiples of `python -c "import torch"` on the same machine.

Run it while nothing else does. A sentence said by `cantata say` is measured whole, with the end of
its process; its first sound comes earlier.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
import psutil

from cantata.config.plugins import list_embedded_models
from cantata_bench.server import READY_DEADLINE_S, running_server, stage_gauges

_STAGE = re.compile(r"cantata:(\w+):0")
"""The name of a stage's process."""


@dataclass(frozen=True, slots=True)
class Took:
    """One measurement."""

    what: str
    wall_s: float
    cpu_s: float | None
    """CPU seconds of the command and its processes; None: not counted."""


def measure_startup(folder: Path, repeats: int = 3) -> list[Took]:
    """Import torch, say a sentence, serve, and restart the first stage.

    Args:
        folder: takes the sound and the server's log.
        repeats: all take turns, because a machine's speed drifts; medians are reported.

    Returns:
        `import torch` first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    say = ["-m", "cantata", "say", "Hello.", "-o", str(folder / "hello.wav")]
    turns = [
        (
            _run("import torch", ["-c", "import torch"]),
            _run('cantata say "Hello.", whole', say),
            _serve(folder),
            _restart_stage(folder),
        )
        for _ in range(repeats)
    ]
    return [_take_median(took) for took in zip(*turns, strict=True)]


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


def _take_median(turns: Sequence[Took]) -> Took:
    cpu_s = [took.cpu_s for took in turns if took.cpu_s is not None]
    wall_s = median(took.wall_s for took in turns)
    return Took(turns[0].what, wall_s, median(cpu_s) if cpu_s else None)


def _run(what: str, arguments: list[str]) -> Took:
    """A Python process, from its beginning to its end."""

    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    began_s, cpu_before_s = time.monotonic(), cpu_s()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return Took(what, time.monotonic() - began_s, cpu_s() - cpu_before_s)


def _serve(folder: Path) -> Took:
    with running_server(folder / "startup.log") as server:
        this = psutil.Process(server.pid)
        processes = (this, *this.children(recursive=True))
        cpu_s = sum(sum(process.cpu_times()[:2]) for process in processes)
        return Took("cantata serve, ready", server.startup_s, cpu_s)


def _restart_stage(folder: Path) -> Took:
    # Of the first model alone: others start when the server is ready, and would be in the way.
    only = ["--model", list_embedded_models()[0]]
    with running_server(folder / "restart.log", options=only) as server:
        return Took("a killed stage, back", _restart(server.url, server.pid), None)


def _restart(url: str, server_pid: int) -> float:
    """Seconds from killing a stage until the server is ready again."""
    name, stage = next(
        (found[1], process)
        for process in psutil.Process(server_pid).children(recursive=True)
        if (found := _STAGE.fullmatch(" ".join(process.cmdline()).strip()))
    )
    began_s = time.monotonic()
    os.kill(stage.pid, signal.SIGKILL)
    was_down = False
    while time.monotonic() - began_s < READY_DEADLINE_S:
        alive = stage_gauges(url, "cantata_stage_alive")[name]
        was_down = was_down or not alive
        if was_down and httpx.get(f"{url}/ready", timeout=5).status_code == httpx.codes.OK:
            return time.monotonic() - began_s
        time.sleep(0.02)
    raise RuntimeError("the stage did not come back")
