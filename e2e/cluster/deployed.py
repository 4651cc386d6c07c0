"""What runs on the cluster under test: a replica on each host, and two edges here, at one port."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import psutil
import yaml

from cantata.config.plugins import locate
from e2e.cluster.listeners import Audience
from e2e.cluster.ray_cluster import RayCluster, comes_true

SHIPPED = locate("solo").plugin
PORT = 8797
REPLICA, EDGE = "cantata.deploy.replica_process", "cantata.deploy.edge_process"
EDGES = 2
REPLICA_CPUS = 3
"""So that no host has room for two of them, and each has for one beside its edges."""
HERE, THERE = "cantata=here", "cantata=there"
"""Labels of the hosts."""
LOAD_S = 400.0
NOTICED_S = 60.0
SLOTS = 12
"""Of each replica, so that one listener more is heard by both, whatever places they measure."""
_NO_PLACE = ("no place became free", "no other replica could go on")
_CUT_OFF = "failed after its first sound: .*; no other replica could go on"
"""What an edge logs when a listener hears an end because all other places are taken. A replica on a
machine that is busy with something else has few."""
_VIEWS = 8
"""Requests of which some reach either edge."""
_SAMPLE = re.compile(r"^(cantata_\w+){(.*)} (\S+)$", re.MULTILINE)


@dataclass
class Deployed:
    """The replicas and edges, and how a test looks at them."""

    cluster: RayCluster
    node: subprocess.Popen[bytes]
    folder: Path
    sound: bytes = field(default=b"", repr=False)
    """What a listener of an undisturbed request hears."""
    url: str = f"http://127.0.0.1:{PORT}"

    def write(
        self,
        replicas: Mapping[str, float],
        *,
        edges: Mapping[str, int | str] = MappingProxyType({"replicas": EDGES, "node": HERE}),
        slots: int = SLOTS,
        **changes: int,
    ) -> Path:
        """A deployment of the embedded voice.

        Args:
            replicas: bounds of their number, and how full they are to be.
            edges: how many, and where.
            slots: of its stages.
            changes: of its other settings.
        """
        content: dict[str, Any] = yaml.safe_load(SHIPPED.deployment.read_text(encoding="utf-8"))
        content["cluster"] = {
            "address": self.cluster.address,
            "edges": {"port": PORT, **edges},
            "replicas": {"cpus": REPLICA_CPUS, **replicas},
            "drain_s": 30,
        }
        content.update(changes)
        for stage in content["stages"].values():
            stage["slots"] = slots
        file = self.folder / "deploy.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        return file

    def start_node(self) -> None:
        """Ray on the other host, which has gone."""
        self.node = self.cluster.start_node(REPLICA_CPUS + 1, THERE)

    def deploy(self, file: Path) -> None:
        """As an operator does; returns when it runs."""
        model = ("--model", SHIPPED.name)
        done = self.cluster.run("-m", "cantata", "deploy", str(file), *model, "--no-auth")
        assert done.returncode == 0, done.stdout + done.stderr

    def deploy_impatiently(self, file: Path) -> None:
        """The same; a need for fewer replicas soon ends one."""
        done = self.cluster.run("-m", "e2e.cluster.impatient_deploy", str(file), SHIPPED.name)
        assert done.returncode == 0, done.stdout + done.stderr

    def views(self) -> list[dict[str, Any]]:
        """What the edges tell of themselves; each of them answers some."""
        answers = (httpx.get(f"{self.url}/health", timeout=30) for _ in range(_VIEWS))
        return [answer.json() for answer in answers]

    def serving(self) -> set[str]:
        """Addresses of the replicas that take requests, of all that an edge knows."""
        return {
            replica["address"]
            for view in self.views()
            for replica in view["replicas"]
            if replica["ready"] and not replica["draining"]
        }

    def elsewhere(self) -> bool:
        """Whether the replica on the other host speaks now."""
        there = f"{self.cluster.other.address}:"
        replicas = (replica for view in self.views() for replica in view["replicas"])
        return any(one["streams"] for one in replicas if one["address"].startswith(there))

    def whole(self) -> bool:
        """Whether everything runs that is to run."""
        return len(self.edges()) == EDGES and all(
            len([one for one in view["replicas"] if one["ready"]]) == 2 for view in self.views()
        )

    def edges(self) -> list[psutil.Process]:
        """Their processes that listen."""
        return [one for one in self.cluster.processes(EDGE) if _listens(one)]

    def replica_there(self) -> psutil.Process:
        """The replica's process on the other host."""
        [found] = filter(self.cluster.is_elsewhere, self.cluster.processes(REPLICA))
        return found

    def stages(self, host: str) -> list[dict[str, Any]]:
        """Of the replica on a host, as an edge tells it."""
        health = httpx.get(f"{self.url}/health", timeout=30).json()
        return [one for one in health["stages"] if one["replica"].startswith(f"{host}:")]

    def metrics(self, name: str) -> dict[str, float]:
        """One metric of all replicas, as one of the edges tells it, by labels."""
        text = httpx.get(f"{self.url}/metrics", timeout=30).text
        return {found[2]: float(found[3]) for found in _SAMPLE.finditer(text) if found[1] == name}

    @contextmanager
    def heard(self, what: str, count: int) -> Iterator[Audience]:
        """So many listen inside the block; each stream that has begun there is heard to its end.
        Then it is told what they heard."""
        began_s, cut_off = time.monotonic(), self.cluster.logged(_CUT_OFF)
        audience = Audience(self.url, self.sound)
        audience.join(count)
        try:
            yield audience
        finally:
            audience.leave()
            audience.excuse(_NO_PLACE, self.cluster.logged(_CUT_OFF) - cut_off)
            print(f"\n{what}, {time.monotonic() - began_s:.0f} s, {audience}")
            for error in audience.errors:
                print(f"  {error}")

    @contextmanager
    def heard_there(self, what: str) -> Iterator[Audience]:
        """The same with as few listeners as make the replica on the other host speak: a request
        goes to the one with more free places, and the hosts need not have equally many."""
        with self.heard(what, 1) as audience:
            while not comes_true(self.elsewhere, 5.0):
                audience.join()
                assert len(audience) <= SLOTS + 1
            yield audience


def _listens(process: psutil.Process) -> bool:
    try:
        sockets = process.net_connections("tcp4")
    except psutil.NoSuchProcess:
        return False
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == PORT for one in sockets)
