"""Ray on two hosts of one machine: this one, and a network namespace."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from namespaces import Host, host

_PORT = 6399
_START_S = 240.0
_BIN = Path(sys.executable).parent
OBJECT_STORE = "--object-store-memory=100000000"


@dataclass
class RayCluster:
    """A head here, and a node on the other host.

    Args:
        other: the other host.
        here: this machine's address on the cable between them.
        folder: for what Ray writes; a short path, since it makes sockets there.
        environment: of every process.
    """

    other: Host
    here: str
    folder: Path
    environment: dict[str, str]
    _nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Of the head."""
        return f"{self.here}:{_PORT}"

    def start_head(self, cpus: int, label: str) -> None:
        """Returns when it accepts drivers."""
        self._start(
            [],
            "--head",
            f"--node-ip-address={self.here}",
            f"--port={_PORT}",
            "--include-dashboard=false",
            f"--temp-dir={self.folder}",
            f"--num-cpus={cpus}",
            f"--labels={label}",
        )
        wait_until(
            lambda: self.run("-m", "ray.scripts.scripts", "status").returncode == 0, _START_S
        )

    def start_node(self, cpus: int, label: str) -> subprocess.Popen[bytes]:
        """A node on the other host."""
        return self._start(
            self.other.prefix,
            f"--address={self.address}",
            f"--node-ip-address={self.other.address}",
            f"--num-cpus={cpus}",
            f"--labels={label}",
        )

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Python, with this cluster's token."""
        return subprocess.run(
            [sys.executable, *words],
            env={**self.environment, "RAY_ADDRESS": self.address},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def end_head(self) -> None:
        """At once; Ray ends what else it runs on this host."""
        [store] = self.processes("gcs/gcs_server")
        store.kill()

    @contextmanager
    def running(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        """The same while the block runs; it is told to end then."""
        with subprocess.Popen([sys.executable, *words], env=self.environment) as process:
            try:
                yield process
            finally:
                process.terminate()
                process.wait(120)

    def processes(self, words: str) -> list[psutil.Process]:
        """Those of this cluster whose command line has these words in it."""
        found = []
        for process in (child for node in self._nodes for child in _tree(node.pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                if words in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def logged(self, pattern: str) -> int:
        """How many lines with this in them its processes have logged."""
        logs = (self.folder / "session_latest" / "logs").rglob("*.err")
        return sum(len(re.findall(pattern, log.read_text(errors="replace"))) for log in logs)

    def is_elsewhere(self, process: psutil.Process) -> bool:
        """Whether a process runs on the other host."""
        return os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net")

    def cpu_s(self) -> float:
        """Of all its processes that are there."""
        used = 0.0
        for process in (one for node in self._nodes for one in _tree(node.pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                used += sum(process.cpu_times()[:2])
        return used

    def stop(self) -> None:
        """End all of it."""
        left = [child for node in self._nodes for child in _tree(node.pid)]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        for node in self._nodes:
            try:
                node.wait(30)
            except subprocess.TimeoutExpired:
                node.kill()
                node.wait()
        for process in psutil.wait_procs(left, timeout=10)[1]:
            process.kill()

    def _start(self, prefix: Sequence[str], *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder.parent / f"{self.folder.name}-node{len(self._nodes)}.log").open("wb")
        with log:
            node = subprocess.Popen(
                [*prefix, str(_BIN / "ray"), "start", "--block", OBJECT_STORE, *words],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._nodes.append(node)
        return node


@contextmanager
def ray_cluster(folder: Path) -> Iterator[RayCluster]:
    """Two hosts that know a token; nothing is started.

    Args:
        folder: a short path.
    """
    token = folder.parent / f"{folder.name}-token"
    token.write_text(secrets.token_hex(32))
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Where others use the cores too, an agent may be late, and its raylet would abort.
        "RAY_agent_register_timeout_ms": "600000",
    }
    with host(8) as other:
        net, last = other.address.rsplit(".", 1)
        cluster = RayCluster(other, f"{net}.{int(last) - 1}", folder, environment)
        try:
            yield cluster
        finally:
            cluster.stop()


def wait_until(condition: Callable[[], bool], limit_s: float) -> float:
    """Look until it holds. Returns how long that took, in seconds."""
    began_s = time.monotonic()
    assert comes_true(condition, limit_s), f"not within {limit_s:g} s"
    return time.monotonic() - began_s


def comes_true(condition: Callable[[], bool], limit_s: float) -> bool:
    """Look until it holds, or for so long."""
    until_s = time.monotonic() + limit_s
    while not (holds := condition()) and time.monotonic() < until_s:
        time.sleep(0.1)
    return holds


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
