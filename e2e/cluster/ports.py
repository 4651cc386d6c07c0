"""What listens on the hosts of a cluster, and what strangers hear there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from e2e.cluster.ray_cluster import RayCluster
from e2e.cluster.stranger import Answers

_PROCESS = re.compile(r"pid=(\d+)")
_HERE_ONLY = ("127.", "[::1]")
_WITHOUT = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS")


@dataclass(frozen=True)
class Port:
    """One that other machines reach."""

    host: str
    number: int
    who: str
    """The command lines of the processes that have it."""


def reachable(cluster: RayCluster) -> list[Port]:
    """Of all processes of the cluster, on both hosts."""
    found = _listening(cluster, [], cluster.here)
    return found + _listening(cluster, cluster.other.prefix, cluster.other.address)


def ask_from_the_other_host(cluster: RayCluster, ports: Sequence[Port]) -> list[Answers]:
    """What a stranger hears: each host's ports are asked from the other one."""
    told: dict[tuple[str, int], Answers] = {}
    for host, prefix in ((cluster.here, cluster.other.prefix), (cluster.other.address, [])):
        numbers = [str(port.number) for port in ports if port.host == host]
        done = subprocess.run(
            [*prefix, sys.executable, "-m", "e2e.cluster.stranger", host, *numbers],
            env={k: v for k, v in cluster.environment.items() if k not in _WITHOUT},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        answers = json.loads(done.stdout)
        told |= {(host, int(number)): Answers(**answers[number]) for number in numbers}
    return [told[port.host, port.number] for port in ports]


def _listening(cluster: RayCluster, prefix: Sequence[str], host: str) -> list[Port]:
    command = [*prefix, "ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    ours = {process.pid: process for process in cluster.processes("")}
    ports: dict[int, list[str]] = {}
    for line in lines.splitlines():
        where, holders = line.split()[3], map(int, _PROCESS.findall(line))
        names = [_name(ours[pid]) for pid in holders if pid in ours]
        if names and not where.startswith(_HERE_ONLY):
            ports.setdefault(int(where.rpartition(":")[2]), []).extend(names)
    return [Port(host, number, ", ".join(sorted(set(who)))) for number, who in ports.items()]


def _name(process: psutil.Process) -> str:
    """Short, and the same in each run."""
    try:
        words = process.cmdline()
    except psutil.NoSuchProcess:
        return "a process that has ended"
    if "-m" in words:
        return words[words.index("-m") + 1]
    first = words[0].rpartition("/")[2] if words else "?"
    script = next((word for word in words[1:] if word.endswith(".py")), "")
    if first.startswith("python") and script:
        return script.rpartition("/")[2]
    return first.partition(".")[0]  # an actor's name is followed by what it does now
