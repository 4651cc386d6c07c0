"""Times that can be trusted: each measurement carries the evidence of what disturbed it.

A machine is shared with other processes, and a virtual one with other machines. `observed` notes
what they took while a block ran. A disturbed measurement says nothing, so `measure_undisturbed`
repeats it a few times and then gives up with `NotMeasured`, neither a success nor a failure.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

R = TypeVar("R")

ATTEMPTS = 3
OTHERS_SHARE = 0.05
"""Share of the cores' time: other processes that take more disturb, unless half of it is idle."""
STOLEN_SHARE = 0.03
"""Likewise for the hypervisor, which leaves us no choice of a core."""
GRAIN_S = 0.05
"""CPU time is counted in ticks of 10 ms per core and process; a difference of less is none."""
LATE_S = 0.05
"""A process that only sleeps wakes up within this on a machine that runs."""
BURST_S = 0.08
"""CPU seconds of all cores that the hypervisor may take within 0.2 s without disturbing: a listener
hears more, however small a part of a long measurement it is."""

CALM_LIMIT_S = 10.0
"""The longest wait for a calm machine before a repetition."""
_PAUSE_S = 0.5
_STEAL_PROBE = Path(__file__).with_name("steal_probe.py")


class NotMeasured(Exception):
    """The machine was never calm; the message says what disturbed each attempt."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What happened on this process's cores during a measurement. All times are in seconds."""

    wall_s: float
    cores: int
    others_s: float
    """CPU time of processes that are neither this one nor its descendants."""
    idle_s: float
    """Idle time of all cores together."""
    stolen_s: float
    """CPU time that the hypervisor gave to other machines."""
    late_s: float
    """Longest delay of a process that only sleeps and wakes up."""
    burst_s: float
    """The most that the hypervisor took of all cores within 0.2 s."""

    @property
    def disturbance(self) -> str:
        """What disturbed the measurement; empty if nothing did."""
        available_s = self.cores * self.wall_s
        found = []
        crowded = self.idle_s < available_s / 2
        if crowded and self.others_s > OTHERS_SHARE * available_s + GRAIN_S:
            share = 100 * self.others_s / available_s
            found.append(f"other processes took {share:.0f}% of the CPU")
        if self.stolen_s > STOLEN_SHARE * available_s + GRAIN_S:
            share = 100 * self.stolen_s / available_s
            found.append(f"the hypervisor took {share:.0f}% of the CPU")
        elif self.burst_s > BURST_S:
            found.append(f"the hypervisor took {1000 * self.burst_s:.0f} ms at once")
        if self.late_s > LATE_S:
            found.append(f"a sleeping process woke up {1000 * self.late_s:.0f} ms late")
        return ", ".join(found)


@dataclass(slots=True)
class Observation:
    """Filled when the block of `observed` ends."""

    evidence: Evidence | None = None

    @property
    def disturbance(self) -> str:
        """The collected evidence.

        Raises:
            RuntimeError: the block has not ended.
        """
        if self.evidence is None:
            raise RuntimeError("the evidence is complete when the block has ended")
        return self.evidence.disturbance


@contextmanager
def observed() -> Iterator[Observation]:
    """Gathers the evidence for the time of the block, also if the block raises."""
    observation = Observation()
    probe = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_STEAL_PROBE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert probe.stdout is not None
    probe.stdout.readline()
    before = _Clocks.read()
    try:
        yield observation
    finally:
        late_s, burst_s = map(float, probe.communicate()[0].split())
        after = _Clocks.read()
        observation.evidence = Evidence(
            wall_s=after.now_s - before.now_s,
            cores=after.cores,
            others_s=max(0.0, (after.busy_s - before.busy_s) - (after.own_s - before.own_s)),
            idle_s=after.idle_s - before.idle_s,
            stolen_s=after.stolen_s - before.stolen_s,
            late_s=late_s,
            burst_s=burst_s,
        )


def measure_undisturbed(measure: Callable[[], R], attempts: int = ATTEMPTS) -> R:
    """The result of the first measurement that nothing disturbed.

    Raises:
        NotMeasured: something disturbed every attempt.
        Exception: whatever an undisturbed measurement raises.
    """
    disturbances: list[str] = []
    for attempt in range(attempts):
        if attempt:
            wait_for_calm()
        failure: Exception | None = None
        with observed() as observation:
            try:
                result = measure()
            except Exception as error:
                failure = error
        if not observation.disturbance:
            if failure is not None:
                raise failure
            return result
        disturbances.append(observation.disturbance)
    raise NotMeasured("; ".join(disturbances))


def wait_for_calm() -> None:
    """Wait until nothing else runs, for `CALM_LIMIT_S` at most."""
    end = time.monotonic() + CALM_LIMIT_S
    while time.monotonic() < end:
        with observed() as observation:
            time.sleep(_PAUSE_S)
        assert observation.evidence is not None
        evidence = observation.evidence
        others = evidence.others_s + evidence.stolen_s
        if not evidence.disturbance and others < OTHERS_SHARE * evidence.cores * evidence.wall_s:
            return


@dataclass(frozen=True, slots=True)
class _Clocks:
    """CPU time so far, of this process's cores and of its process tree."""

    now_s: float
    cores: int
    busy_s: float
    idle_s: float
    stolen_s: float
    own_s: float

    @classmethod
    def read(cls) -> _Clocks:
        this = psutil.Process()
        times = psutil.cpu_times(percpu=True)
        affinity = getattr(this, "cpu_affinity", lambda: range(len(times)))()
        ours = [times[core]._asdict() for core in affinity if core < len(times)]
        idle_s = sum(core["idle"] + core.get("iowait", 0.0) for core in ours)
        stolen_s = sum(core.get("steal", 0.0) for core in ours)
        guests_s = sum(core.get("guest", 0.0) + core.get("guest_nice", 0.0) for core in ours)
        total_s = sum(sum(core.values()) for core in ours)
        return cls(
            now_s=time.monotonic(),
            cores=len(ours),
            busy_s=total_s - idle_s - stolen_s - guests_s,
            idle_s=idle_s,
            stolen_s=stolen_s,
            own_s=sum(_sum_cpu_s(process) for process in (this, *this.children(recursive=True))),
        )


def _sum_cpu_s(process: psutil.Process) -> float:
    """CPU time of the process and of its children that have ended."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.Error:
        return 0.0  # it has just ended: its parent has its time
