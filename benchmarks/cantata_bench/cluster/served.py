"""The same model behind a server of its own, and behind an edge and a replica, loaded in turns."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cantata.plugins import locate
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.results import LoadSpec
from cantata_bench.server import READY_DEADLINE_S, free_port, running_server
from cantata_bench.summary import summarise
from cantata_bench.target import Target

Tell = Callable[[str], None]
_ROUNDS = 3
"""Of each load; the median counts."""


@dataclass(frozen=True, slots=True)
class Served:
    """One load, both ways: medians."""

    streams: int
    throughput_x: tuple[float, float]
    """Seconds of sound per second: of the server, through the edge."""
    ttfp_s: tuple[float, float]
    """p50, likewise."""


def measure_served(
    model: str | None, streams: list[int], seconds: float, folder: Path, tell: Tell
) -> list[Served]:
    """Closed loops of so many streams, in turns.

    Args:
        model: as `cantata serve --model` takes it; None: the embedded voice.
        seconds: of each load.
        folder: for the processes' output.

    Raises:
        RuntimeError: one was not ready, or spoke nothing.
    """
    chosen = ("--model", model or locate(None).plugin.name)
    found: list[Served] = []
    with (
        running_server(folder / "server.log", options=chosen) as server,
        running_replica(folder / "replica.log", chosen) as address,
        running_server(folder / "edge.log", options=("--replica", address)) as edge,
    ):
        targets = [Target(server.url), Target(edge.url)]
        for count in streams:
            rounds = [
                [_loaded(target, count, seconds) for target in targets] for _ in range(_ROUNDS)
            ]
            found.append(_medians(count, rounds))
            tell(f"{count} streams: measured")
    return found


@contextmanager
def running_replica(log: Path, options: tuple[str, ...]) -> Iterator[str]:
    """`cantata replica` for the time of the block; gives its address, once it is ready.

    Raises:
        RuntimeError: it was not ready in time.
    """
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "cantata", "replica", "--listen", address, *options]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline_s = time.monotonic() + READY_DEADLINE_S
        while f"replica ready on {address}" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise RuntimeError(f"the replica was not ready: {log} says why")
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def _loaded(target: Target, streams: int, seconds: float) -> tuple[float, float]:
    """Seconds of sound per second, and TTFP p50."""
    # Short texts: of each, the way through an edge is the largest part.
    spec = LoadSpec(kind="closed", streams=streams, texts="short", seconds=seconds)
    report = in_own_process(measured_load, spec, target, False)
    found = summarise(report.records, report.audio_in_window_s / seconds)
    if found is None:
        raise RuntimeError(f"{target.url} spoke nothing")
    return found.throughput_x, found.ttfp.p50


def _medians(streams: int, rounds: list[list[tuple[float, float]]]) -> Served:
    server, edge = ([measured[way] for measured in rounds] for way in range(2))
    return Served(
        streams,
        (median(x for x, _ in server), median(x for x, _ in edge)),
        (median(s for _, s in server), median(s for _, s in edge)),
    )
