"""Serves the same model in three ways, and loads them in turns: by one server; by that server
behind a process that only passes bytes on; by an edge and a replica.

A machine's speed drifts, and what runs first or last may have it easier. So each round measures
every way once, each round in another order, until there was every order; a figure of an edge is the
median of its differences from the server within a round. On a busy machine, times say nothing; CPU
time for a second of sound still does.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from statistics import median
from typing import Literal

import psutil

from cantata.config.plugins import locate
from cantata_bench.client import Target
from cantata_bench.cluster.byte_proxy import running_proxy
from cantata_bench.interleave import RepeatBudget
from cantata_bench.load import measured_load
from cantata_bench.machine import in_own_process
from cantata_bench.noise_guard import observed
from cantata_bench.results import LoadSpec
from cantata_bench.server import READY_DEADLINE_S, end, free_port, running_server
from cantata_bench.summary import summarize

Tell = Callable[[str], None]
SERVER, PROXY, EDGE = "server", "behind a byte proxy", "through an edge"
_WARM_UP_S = 1.0
"""Of each turn; all are warm already."""
_REPETITIONS = 2
"""Rounds of a load that are repeated because something disturbed them."""


@dataclass(frozen=True, slots=True)
class MeasuredTurn:
    """One load on one way to the model."""

    throughput_x: float
    """Seconds of sound per second."""
    ttfp_s: float
    """p50"""
    cpu: float
    """CPU seconds for a second of sound, of the processes between the clients and the stages."""
    steps: Mapping[str, float]
    """Where the first packets' time went, in seconds (p50 of each step)."""


@dataclass(frozen=True, slots=True)
class Round:
    """Every way once, one after the other."""

    turns: Mapping[str, MeasuredTurn]
    disturbance: str
    """What disturbed it; empty: nothing did."""


@dataclass(frozen=True, slots=True)
class Range:
    """A figure's median over the rounds, and its extremes."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Range:
        return cls(median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class ServedLoad:
    """One load on all ways."""

    streams: int
    rounds: tuple[Round, ...]

    def turns(self, way: str) -> list[MeasuredTurn]:
        """One way's turns, of all rounds."""
        return [one.turns[way] for one in self.rounds]

    def throughput_share(self, way: str) -> Range:
        """One way's throughput, as a share of the server's."""
        return self._compare_ways(way, lambda one, server: one.throughput_x / server.throughput_x)

    def added_ttfp_s(self, way: str) -> Range:
        """To the server's p50."""
        return self._compare_ways(way, lambda one, server: one.ttfp_s - server.ttfp_s)

    def _compare_ways(
        self, way: str, compare: Callable[[MeasuredTurn, MeasuredTurn], float]
    ) -> Range:
        pairs = zip(self.turns(way), self.turns(SERVER), strict=True)
        return Range.of([compare(one, server) for one, server in pairs])


@dataclass(frozen=True, slots=True)
class _Way:
    """Where clients connect, and the processes whose CPU time counts."""

    target: Target
    pids: tuple[int, ...]


def measure_served(
    model: str | None,
    streams: Sequence[int],
    seconds: float,
    folder: Path,
    tell: Tell,
    kind: Literal["closed", "live"] = "closed",
) -> list[ServedLoad]:
    """Loads of so many streams, in turns.

    Args:
        model: as `cantata serve --model` takes it; None: the embedded voice.
        seconds: of each turn.
        folder: for the processes' output.
        tell: takes what is going on.
        kind: of the loads.

    Raises:
        RuntimeError: one was not ready, or spoke nothing.
    """
    chosen = ("--model", model or locate(None).plugin.name)
    found: list[ServedLoad] = []
    with (
        running_server(folder / "server.log", options=chosen) as server,
        running_proxy(server.url) as proxy,
        running_replica(folder / "replica.log", chosen) as replica,
        running_server(folder / "edge.log", options=("--replica", replica.address)) as edge,
    ):
        ways = {
            SERVER: _Way(Target(server.url), (server.pid,)),
            PROXY: _Way(Target(proxy.url), (server.pid, proxy.pid)),
            EDGE: _Way(Target(edge.url), (edge.pid, replica.pid)),
        }
        for count in streams:
            patience = RepeatBudget(tell, _REPETITIONS)
            # Short texts: of each, the way through an edge is the largest part.
            spec = LoadSpec(
                kind=kind, streams=count, texts="short", seconds=seconds, warm_up_s=_WARM_UP_S
            )
            rounds = list[Round]()
            for order in permutations(ways):
                measure = partial(_measure_round, order, ways, spec)
                rounds.append(patience.repeated(measure, lambda one: one.disturbance))
                tell(f"{count} streams: {len(rounds)} of 6 rounds measured")
            found.append(ServedLoad(count, tuple(rounds)))
    return found


def _measure_round(order: Sequence[str], ways: Mapping[str, _Way], spec: LoadSpec) -> Round:
    with observed() as observation:
        turns = {name: _measure_turn(ways[name], spec) for name in order}
    return Round(turns, observation.disturbance)


def _measure_turn(way: _Way, spec: LoadSpec) -> MeasuredTurn:
    before_s = _sum_cpu_s(way.pids)
    report = in_own_process(measured_load, spec, way.target, False)
    used_s = _sum_cpu_s(way.pids) - before_s
    found = summarize(report.records, report.audio_in_window_s / spec.seconds)
    if found is None:
        raise RuntimeError(f"{way.target.url} spoke nothing")
    steps = {step: spread.p50 for step, spread in found.ttfp_steps.items()}
    return MeasuredTurn(found.throughput_x, found.ttfp.p50, used_s / report.audio_s, steps)


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


def _sum_cpu_s(pids: Sequence[int]) -> float:
    """CPU time that these processes have used, without their children."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return float(sum(one.user + one.system for one in times))
