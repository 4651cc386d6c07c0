"""This machine, and work in a process of its own on it."""

from __future__ import annotations

import multiprocessing
import os
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import ParamSpec, TypeVar

import psutil

from cantata_bench.results import Machine

P = ParamSpec("P")
R = TypeVar("R")


def in_own_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run it in a fresh process and return what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def describe_machine() -> Machine:
    """This one, and how busy it is already."""
    return Machine(
        cpu=_cpu_name(),
        cores=len(psutil.Process().cpu_affinity() or ()) or (os.cpu_count() or 1),
        load_average=os.getloadavg()[0],
        python=platform.python_version(),
    )


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
