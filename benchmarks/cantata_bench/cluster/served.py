"""Serves the same model by one server, and by an edge and a replica, and loads both in turns.

On a busy machine, times say nothing; CPU time for a second of sound still does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from cantata.config.plugins import locate
from cantata_bench.client import Target
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.results import LoadSpec
from cantata_bench.server import READY_DEADLINE_S, end, free_port, running_server
from cantata_bench.summary import summarise

Tell = Callable[[str], None]
_ROUNDS = 3
"""Rounds of each load; the median counts."""


@dataclass(frozen=True, slots=True)
class Way:
    """Medians of one load on one way to the model."""

    throughput_x: float
    """Seconds of sound per second."""
    ttfp_s: float
    """p50"""
    cpu: float
    """CPU seconds for a second of sound, of the processes between the clients and the stages."""


@dataclass(frozen=True, slots=True)
class Served:
    """One load on both ways."""

    streams: int
    server: Way
    edge: Way


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A server or an edge, and the processes whose CPU time counts."""

    target: Target
    pids: tuple[int, ...]


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
        running_replica(folder / "replica.log", chosen) as replica,
        running_server(folder / "edge.log", options=("--replica", replica.address)) as edge,
    ):
        ways = (
            _Loaded(Target(server.url), (server.pid,)),
            _Loaded(Target(edge.url), (edge.pid, replica.pid)),
        )
        for count in streams:
            rounds = [[_measured(way, count, seconds) for way in ways] for _ in range(_ROUNDS)]
            server_way, edge_way = (_median(measured) for measured in zip(*rounds, strict=True))
            found.append(Served(count, server_way, edge_way))
            tell(f"{count} streams: measured")
    return found


@dataclass(frozen=True, slots=True)
class RunningReplica:
    """A replica that is ready."""

    address: str
    """HOST:PORT"""
    pid: int


@contextmanager
def running_replica(log: Path, options: tuple[str, ...]) -> Iterator[RunningReplica]:
    """`cantata replica` for the time of the block, once it is ready.

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
        yield RunningReplica(address, process.pid)
    finally:
        end(process)


def _measured(way: _Loaded, streams: int, seconds: float) -> Way:
    # Short texts: of each, the way through an edge is the largest part.
    spec = LoadSpec(kind="closed", streams=streams, texts="short", seconds=seconds)
    before_s = _cpu_s(way.pids)
    report = in_own_process(measured_load, spec, way.target, False)
    used_s = _cpu_s(way.pids) - before_s
    found = summarise(report.records, report.audio_in_window_s / seconds)
    if found is None:
        raise RuntimeError(f"{way.target.url} spoke nothing")
    return Way(found.throughput_x, found.ttfp.p50, used_s / report.audio_s)


def _cpu_s(pids: Sequence[int]) -> float:
    """CPU time that these processes have used, without their children."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return float(sum(one.user + one.system for one in times))


def _median(measured: Sequence[Way]) -> Way:
    return Way(
        median(one.throughput_x for one in measured),
        median(one.ttfp_s for one in measured),
        median(one.cpu for one in measured),
    )
