"""Detects a hung stage process from outside, without mistaking a slow machine for a hang.

Three cases. A *stopped* process is recognized by its state. A process that waits for something
that never comes *sleeps* in the middle of a call and uses no processor time; one that
only gets little of a busy machine is runnable, or waits for the disk, and its time advances. One
in an endless loop *computes*: it is judged by its own processor time, so a busy machine makes
no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from cantata.ipc.shared_heartbeat import HeartbeatPhase, HeartbeatSnapshot

INTERVAL_S = 0.25
"""Between two checks of a process."""
IDLE_INTERVAL_S = 1.0
"""Between two reads of a process that only waits for messages: each takes 0.1 ms of CPU, and a
server may have a dozen stages."""
STOPPED_S = 1.0
ASLEEP_S = 1.0
STEADY_CPU_S = 1.5
SILENCE_SHARE = 0.8
"""Part of the silence after which requests fail. A prompt may take this long, because its cost is
unknown before, and no longer, because all other requests of the stage would fail."""
MAX_ASLEEP = 5.0
"""Times the longest call of this kind so far; a call may sleep for this long if that is more."""
MAX_CPU = 20.0
"""The same for computing."""


@dataclass(frozen=True, slots=True)
class ProcessSample:
    at_s: float
    snapshot: HeartbeatSnapshot
    status: str
    """psutil's."""
    cpu_s: float
    """Processor time of all its threads since its start."""


class ProcessSampler:
    """Reads how one process is: at each check, or once a second while it is idle.

    WHY one `psutil.Process`: each new one reads the process's start again, which is half the work.

    Args:
        pid: of a child that nobody has waited for, so the id is not given to another process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._process: psutil.Process | None = None
        self._last: ProcessSample | None = None

    def sample(self, snapshot: HeartbeatSnapshot, at_s: float) -> ProcessSample | None:
        """The process as the kernel sees it; None if it is still idle, or if that cannot be read
        now, because the process is gone or there is no descriptor to read it with."""
        if self._is_still_idle(snapshot, at_s):
            return None
        self._last = self._read(snapshot, at_s)
        return self._last

    def _is_still_idle(self, snapshot: HeartbeatSnapshot, at_s: float) -> bool:
        last = self._last
        return (
            last is not None
            and last.status == psutil.STATUS_SLEEPING
            and at_s - last.at_s < IDLE_INTERVAL_S - INTERVAL_S / 2
            and snapshot.phase is HeartbeatPhase.WAITING
            and snapshot.number == last.snapshot.number
        )

    def _read(self, snapshot: HeartbeatSnapshot, at_s: float) -> ProcessSample | None:
        try:
            process = self._process = self._process or psutil.Process(self._pid)
            with process.oneshot():
                times = process.cpu_times()
                status: str = process.status()
            if status == psutil.STATUS_SLEEPING and snapshot.phase is not HeartbeatPhase.WAITING:
                status = _find_busiest_state(self._pid)
            return ProcessSample(at_s, snapshot, status, times.user + times.system)
        except (psutil.Error, OSError):
            return None


def _find_busiest_state(pid: int) -> str:
    """Sleeping only if every thread sleeps: the first one may wait for another that works. Raises
    OSError: the process is gone."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    states = {stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] for stat in stats}
    return psutil.STATUS_SLEEPING if states <= {"S"} else psutil.STATUS_RUNNING


@dataclass(frozen=True, slots=True)
class Hang:
    """Why a process counts as hung."""

    why: str
    from_outside: bool
    """Stopped from outside: none of its requests is to blame."""


class HangDetector:
    """Checks one process repeatedly. `silence_s`: after which requests fail."""

    def __init__(self, silence_s: float) -> None:
        self._silence_s = silence_s
        self._last: ProcessSample | None = None
        self._stopped_s = 0.0
        self._asleep_s = 0.0
        self._computed_s = 0.0

    def observe(self, sample: ProcessSample) -> Hang | None:
        """Check once; what is wrong, if anything is."""
        last, self._last = self._last, sample
        if last is None:
            return None
        # If the server itself or the whole machine was held up, the elapsed time says nothing.
        passed_s = min(sample.at_s - last.at_s, 2 * INTERVAL_S)
        computed_s = sample.cpu_s - last.cpu_s
        stopped = sample.status == psutil.STATUS_STOPPED
        self._stopped_s = self._stopped_s + passed_s if stopped else 0.0
        snapshot = sample.snapshot
        if snapshot.phase is HeartbeatPhase.WAITING or snapshot.number != last.snapshot.number:
            self._asleep_s = self._computed_s = 0.0
        elif sample.status == psutil.STATUS_SLEEPING and computed_s <= 0:
            self._asleep_s += passed_s
        else:
            self._computed_s += min(computed_s, passed_s)  # counts several threads once
        return self._judge(snapshot)

    def _judge(self, snapshot: HeartbeatSnapshot) -> Hang | None:
        if self._stopped_s >= STOPPED_S:
            return Hang(f"was stopped for {self._stopped_s:.1f} s", from_outside=True)
        if self._asleep_s >= max(ASLEEP_S, MAX_ASLEEP * snapshot.longest_s):
            return Hang(f"waited in one call for {self._asleep_s:.1f} s", from_outside=False)
        steady = snapshot.phase is HeartbeatPhase.STEADY
        min_s = STEADY_CPU_S if steady else SILENCE_SHARE * self._silence_s
        if self._computed_s >= max(min_s, MAX_CPU * snapshot.longest_s):
            return Hang(f"computed in one call for {self._computed_s:.1f} s", from_outside=False)
        return None
