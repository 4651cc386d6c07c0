"""What counts as a hang, and what is only a slow machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from cantata.ipc.shared_heartbeat import HeartbeatPhase, HeartbeatSnapshot
from cantata.pipeline.watchdog import INTERVAL_S, Hang, HangDetector, ProcessSample, ProcessSampler

SILENCE_S = 10.0
RUNNING, SLEEPING, STOPPED = psutil.STATUS_RUNNING, psutil.STATUS_SLEEPING, psutil.STATUS_STOPPED
DISK = psutil.STATUS_DISK_SLEEP


def judged(
    looks: Iterable[tuple[HeartbeatPhase, str, float]],
    *,
    new_calls: bool = False,
    longest_s: float = 0.03,
    interval_s: float = INTERVAL_S,
) -> Hang | None:
    """The first verdict on a process.

    Args:
        looks: what the loop is in, the process's state, processor seconds since the look before.
        new_calls: each look finds another call.
        longest_s: of any call before.
        interval_s: between two looks.
    """
    detector, cpu_s = HangDetector(SILENCE_S), 0.0
    for number, (phase, status, computed_s) in enumerate(looks):
        cpu_s += computed_s
        snapshot = HeartbeatSnapshot(number if new_calls else 0, phase, 0.0, longest_s, "", {})
        hang = detector.observe(ProcessSample(number * interval_s, snapshot, status, cpu_s))
        if hang is not None:
            return hang
    return None


@pytest.mark.parametrize("phase", HeartbeatPhase)
def test_a_stopped_process_hangs_whatever_it_is_at(phase: HeartbeatPhase) -> None:
    hang = judged([(phase, STOPPED, 0.0)] * 5)
    assert hang is not None
    assert hang.from_outside
    assert judged([(phase, STOPPED, 0.0)] * 4) is None


def test_a_call_that_sleeps_for_a_second_hangs() -> None:
    hang = judged([(HeartbeatPhase.STEADY, SLEEPING, 0.0)] * 5)
    assert hang is not None
    assert not hang.from_outside
    assert judged([(HeartbeatPhase.BEGINNING, SLEEPING, 0.0)] * 5) is not None


@pytest.mark.parametrize(
    ("phase", "status", "computed_s"),
    [
        (HeartbeatPhase.WAITING, SLEEPING, 0.0),  # nothing to do
        (HeartbeatPhase.STEADY, RUNNING, 0.0),  # a busy machine gives it no time at all
        (HeartbeatPhase.STEADY, SLEEPING, 0.01),  # or a little
        (HeartbeatPhase.STEADY, DISK, 0.0),  # pages come back from a slow disk
        (HeartbeatPhase.BEGINNING, RUNNING, 0.15),  # a long prompt, encoded for six seconds
    ],
)
def test_a_slow_machine_is_no_hang(phase: HeartbeatPhase, status: str, computed_s: float) -> None:
    assert judged([(phase, status, computed_s)] * 41) is None


def test_calls_that_come_to_an_end_are_no_hang() -> None:
    looks = [(HeartbeatPhase.STEADY, SLEEPING, 0.0), (HeartbeatPhase.STEADY, RUNNING, 0.25)] * 100
    assert judged(looks, new_calls=True) is None


def test_a_call_that_computes_for_too_long_hangs() -> None:
    """A step of running requests soon, a prompt before all requests fail of silence."""
    busy = (RUNNING, 0.25)
    assert judged([(HeartbeatPhase.STEADY, *busy)] * 7) is not None
    assert judged([(HeartbeatPhase.STEADY, *busy)] * 6) is None
    assert judged([(HeartbeatPhase.BEGINNING, *busy)] * 33) is not None
    assert judged([(HeartbeatPhase.BEGINNING, *busy)] * 32) is None
    # However many threads compute, it is the time that counts.
    assert judged([(HeartbeatPhase.BEGINNING, RUNNING, 4.0)] * 32) is None


def test_where_calls_were_long_before_they_may_be_again() -> None:
    assert judged([(HeartbeatPhase.STEADY, RUNNING, 0.25)] * 20, longest_s=0.3) is None
    assert judged([(HeartbeatPhase.STEADY, SLEEPING, 0.0)] * 6, longest_s=0.5) is None


def test_time_without_observations_does_not_count() -> None:
    """The machine slept, or the server was held up: a minute passes between two looks."""
    assert judged([(HeartbeatPhase.STEADY, SLEEPING, 0.0)] * 2, interval_s=60.0) is None


_SPINS = "threading.Thread(target=lambda: all(iter(lambda: True, False)), daemon=True).start()"


@contextmanager
def running(other_thread: str) -> Iterator[int]:
    """The id of a process whose first thread sleeps."""
    code = f"import sys, threading; {other_thread}\nprint(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        deadline_s = time.monotonic() + 60
        first_thread = psutil.Process(process.pid)
        while first_thread.status() != SLEEPING and time.monotonic() < deadline_s:
            pass  # it still prints
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def snapshot(phase: HeartbeatPhase, number: int = 0) -> HeartbeatSnapshot:
    return HeartbeatSnapshot(number, phase, 0.0, 0.0, "", {})


@pytest.mark.parametrize(("other_thread", "status"), [(_SPINS, RUNNING), ("", SLEEPING)])
def test_a_process_in_a_call_sleeps_only_if_all_its_threads_do(
    other_thread: str, status: str
) -> None:
    with running(other_thread) as pid:
        sampler = ProcessSampler(pid)
        for phase, seen in (HeartbeatPhase.WAITING, SLEEPING), (HeartbeatPhase.BEGINNING, status):
            sample = sampler.sample(snapshot(phase), 0.0)
            assert sample is not None
            assert sample.status == seen


def test_an_idle_process_is_read_once_a_second_and_a_busy_one_each_time() -> None:
    with running("") as pid:
        sampler = ProcessSampler(pid)

        def read_times_s(*snapshots: HeartbeatSnapshot) -> list[float]:
            times = [(i * INTERVAL_S, snapshot) for i, snapshot in enumerate(snapshots)]
            return [at_s for at_s, seen in times if sampler.sample(seen, at_s) is not None]

        idle = snapshot(HeartbeatPhase.WAITING)
        assert read_times_s(*[idle] * 9) == [0.0, 1.0, 2.0]
        served = [snapshot(HeartbeatPhase.WAITING, number) for number in range(1, 4)]
        assert read_times_s(*served) == [0.0, 0.25, 0.5], "it was in calls in between"
        assert read_times_s(*[snapshot(HeartbeatPhase.STEADY, 9)] * 3) == [0.0, 0.25, 0.5]


def test_an_idle_process_that_is_stopped_counts_as_hung_within_two_seconds() -> None:
    with running("") as pid:
        sampler, detector = ProcessSampler(pid), HangDetector(SILENCE_S)
        idle = snapshot(HeartbeatPhase.WAITING)
        sampler.sample(idle, 0.0)
        process = psutil.Process(pid)
        process.suspend()
        deadline_s = time.monotonic() + 60
        while process.status() != STOPPED and time.monotonic() < deadline_s:
            pass
        samples = (sampler.sample(idle, i * INTERVAL_S) for i in range(1, 9))
        hangs = [detector.observe(sample) for sample in samples if sample is not None]
        assert any(hang is not None and hang.from_outside for hang in hangs)
