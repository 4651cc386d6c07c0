"""What counts as a disturbance, and that other processes' work is distinguished from our own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cantata_bench import noise_guard
from cantata_bench.noise_guard import Evidence, NotMeasured, measure_undisturbed, observed
from timed import measured, timed

_STRANGERS = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.write(1, b"%d\\n" % os.getpid())
            os.close(1)
            end = time.monotonic() + 20
            while time.monotonic() < end:
                pass
        os._exit(0)
    os.wait()
"""


def evidence(**found: float) -> Evidence:
    noise_guard = {"wall_s": 1.0, "cores": 2, "others_s": 0.05, "idle_s": 0.2, "stolen_s": 0.0}
    return Evidence(**{**noise_guard, "late_s": 0.01, "burst_s": 0.02, **found})  # type: ignore[arg-type]


@contextmanager
def strangers() -> Iterator[None]:
    """Orphans that keep every core busy; they are not our descendants."""
    command = [sys.executable, "-I", "-S", "-c", _STRANGERS, str(os.cpu_count())]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=30)
    try:
        yield
    finally:
        for pid in told.stdout.split():
            os.kill(int(pid), signal.SIGKILL)


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, ""),
        ({"others_s": 0.4}, "other processes took 20% of the CPU"),
        ({"others_s": 0.4, "idle_s": 1.1}, ""),  # they had a core of their own
        ({"stolen_s": 0.2, "idle_s": 1.1}, "the hypervisor took 10% of the CPU"),
        ({"burst_s": 0.12}, "the hypervisor took 120 ms at once"),
        ({"late_s": 0.07}, "a sleeping process woke up 70 ms late"),
        ({"wall_s": 0.01, "others_s": 0.01, "idle_s": 0.0}, ""),  # less than a clock's grain
    ],
)
def test_what_disturbs(found: dict[str, float], said: str) -> None:
    assert evidence(**found).disturbance == said


def test_evidence_needs_the_whole_block() -> None:
    with observed() as observation, pytest.raises(RuntimeError, match="has ended"):
        _ = observation.disturbance


def test_own_work_is_not_a_disturbance() -> None:
    """Neither that of children which have ended."""
    child = "import time\nwhile time.process_time() < 0.6: pass"
    with observed() as observation:
        spin(0.6)
        subprocess.run([sys.executable, "-I", "-S", "-c", child], check=True)
    found = observation.evidence
    assert found is not None
    ours_s = found.cores * found.wall_s - found.idle_s - found.stolen_s - found.others_s
    assert ours_s > 1.0  # less the clocks' grain


@pytest.mark.timed
def test_a_measurement_among_strangers_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_guard, "CALM_LIMIT_S", 0.0)  # they do not go away
    calls = []

    def measure() -> None:
        calls.append(1)
        spin(0.3)
        raise AssertionError("too slow")

    with strangers(), pytest.raises(NotMeasured, match="other processes took"):
        measure_undisturbed(measure, attempts=1)
    assert calls == [1]
    with strangers(), pytest.raises(pytest.skip.Exception, match="not measured"):
        measured(lambda: spin(0.3))


@pytest.mark.timed
def test_a_timed_test_is_skipped_only_where_it_was_disturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noise_guard, "CALM_LIMIT_S", 0.0)

    @timed
    def slow() -> None:
        spin(0.3)
        raise AssertionError("too slow")

    @timed(one_sided=True)
    def quick() -> None:
        spin(0.3)

    @timed
    def broken() -> None:
        raise KeyError("no time at all")

    with strangers():
        quick()
        with pytest.raises(pytest.skip.Exception, match=r"not measured.*too slow"):
            slow()
        with pytest.raises(KeyError):
            broken()


@timed
def test_a_calm_measurement_keeps_its_failure() -> None:
    def measure() -> None:
        raise KeyError("what it found")

    with pytest.raises(KeyError):
        measure_undisturbed(measure)
