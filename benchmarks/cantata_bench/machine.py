"""This machine, work in a process of its own on it, and processes' CPU seconds and peak memory."""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

import psutil

from cantata_bench.results import Machine, ProcessUse

P = ParamSpec("P")
R = TypeVar("R")


def in_own_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a fresh process and return what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def describe_machine() -> Machine:
    """This one, and how busy it is already."""
    return Machine(
        cpu=_read_cpu_name(),
        cores=len(psutil.Process().cpu_affinity() or ()) or (os.cpu_count() or 1),
        load_average=os.getloadavg()[0],
        python=platform.python_version(),
    )


def _read_cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


_INTERVAL_S = 0.2
API = "api"


@dataclass(slots=True)
class _Seen:
    name: str
    cpu_at_start_s: float
    cpu_s: float
    peak_rss_bytes: int


@dataclass(slots=True)
class ProcessUsage:
    """Filled when the block of `watched` ends."""

    processes: tuple[ProcessUse, ...] = ()
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def look(self, pid: int) -> None:
        """Take a sample of the process and its children."""
        for process in _list_tree(pid):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    rss_bytes = process.memory_info().rss
                    cpu_s = times.user + times.system
                    seen = self._seen.get(process.pid)
                    if seen is None:
                        name = API if process.pid == pid else _read_title(process)
                        seen = self._seen[process.pid] = _Seen(name, cpu_s, cpu_s, rss_bytes)
            except psutil.Error:
                continue  # it has just ended
            seen.cpu_s = cpu_s
            seen.peak_rss_bytes = max(seen.peak_rss_bytes, rss_bytes)

    def close(self) -> None:
        """Work out what was taken since the first sample."""
        self.processes = tuple(
            ProcessUse(
                name=seen.name,
                cpu_s=seen.cpu_s - seen.cpu_at_start_s,
                peak_rss_bytes=seen.peak_rss_bytes,
            )
            for seen in self._seen.values()
        )


@contextmanager
def watched(pid: int | None) -> Iterator[ProcessUsage]:
    """Samples a process tree for the time of the block; None watches nothing."""
    usage = ProcessUsage()
    if pid is None:
        yield usage
        return
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(_INTERVAL_S):
            usage.look(pid)

    usage.look(pid)
    thread = threading.Thread(target=sample, name="watch", daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        stop.set()
        thread.join()
        usage.look(pid)
        usage.close()


def private_bytes(pid: int) -> dict[str, int]:
    """Memory of each process of a tree that is in no other process, by what it is; the root is the
    api."""
    found: dict[str, int] = {}
    for process in _list_tree(pid):
        try:
            name = API if process.pid == pid else _read_title(process)
            found[name] = found.get(name, 0) + process.memory_full_info().uss
        except psutil.Error:
            continue  # it has just ended
    return found


def _list_tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _read_title(process: psutil.Process) -> str:
    """Stage processes name themselves; multiprocessing's helper keeps Python's command line."""
    words = process.cmdline()
    helper = next((word for word in words if "resource_tracker" in word), None)
    return "resource tracker" if helper else (words[0] if words else process.name())
