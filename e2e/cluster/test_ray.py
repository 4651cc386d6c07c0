"""Replicas on two hosts, placed and watched by Ray: what listeners hear of faults."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil
import pytest

from cantata.plugins import locate
from e2e.cluster.listeners import Heard, listening, speak
from e2e.cluster.ray_cluster import RayCluster, comes_true, ray_cluster, wait_until
from namespaces import WHY_NOT, are_possible

pytestmark = pytest.mark.skipif(not are_possible(), reason=WHY_NOT)

SHIPPED = locate(None).plugin
PORT = 8797
REPLICA = "cantata.deploying.replica_process"
LOAD_S = 400.0
MOST_LISTENERS = 12
CLUSTER = f"""
cluster:
  address: ADDRESS
  edges: {{port: {PORT}}}
  replicas: {{min: 2}}
  drain_s: 30
"""


@dataclass
class Deployed:
    """Two replicas, one on each host, and an edge on this one."""

    cluster: RayCluster
    node: subprocess.Popen[bytes]
    url: str
    sound: bytes = field(repr=False)
    """What a listener of an undisturbed request hears."""

    def speaking(self) -> bool:
        """Whether the replica on the other host speaks now."""
        answer = httpx.get(f"{self.url}/health", timeout=30).json()
        there = f"{self.cluster.other.address}:"
        return any(r["streams"] for r in answer["replicas"] if r["address"].startswith(there))

    def serving(self) -> set[str]:
        """Addresses of the replicas that take requests."""
        answer = httpx.get(f"{self.url}/health", timeout=30).json()
        return {r["address"] for r in answer["replicas"] if r["ready"] and not r["draining"]}


@pytest.fixture(scope="module")
def deployed() -> Iterator[Deployed]:
    folder = Path(tempfile.mkdtemp(prefix="rc"))
    with ray_cluster(folder / "r") as cluster:
        began_s = time.monotonic()
        cluster.start_head(cpus=2)  # an edge and a replica
        node = cluster.start_node(cpus=1)
        told(cluster, "Ray", began_s)
        own = SHIPPED.deployment.read_text(encoding="utf-8")
        file = folder / "deploy.yaml"
        file.write_text(own + CLUSTER.replace("ADDRESS", cluster.address), encoding="utf-8")
        model = ("--model", SHIPPED.name)
        done = cluster.run("-m", "cantata", "deploy", str(file), *model, "--no-auth")
        assert done.returncode == 0, done.stdout + done.stderr
        url = f"http://127.0.0.1:{PORT}"
        one = Deployed(cluster, node, url, b"")
        wait_until(lambda: len(one.serving()) == 2, LOAD_S)
        told(cluster, "Ray, two replicas and an edge", began_s)
        one.sound = speak(url)
        yield one


def told(cluster: RayCluster, what: str, began_s: float) -> None:
    took_s = time.monotonic() - began_s
    print(f"\n{what} after {took_s:.0f} s, {cluster.cpu_s():.0f} CPU seconds so far")


@contextmanager
def listening_there(deployed: Deployed) -> Iterator[list[Heard]]:
    """Listeners, as few as make the replica on the other host speak: a request goes to the one with
    more free places, and the hosts need not have equally many."""
    with ExitStack() as stack:
        heard: list[Heard] = []
        while not heard or not comes_true(deployed.speaking, 15.0):
            heard.append(stack.enter_context(listening(deployed.url, 1, deployed.sound)))
            assert len(heard) <= MOST_LISTENERS
        yield heard


def hears(heard: Sequence[Heard], what: str) -> None:
    same, different = sum(one.same for one in heard), sum(one.different for one in heard)
    errors = [error for one in heard for error in one.errors]
    gap_s = max(one.longest_gap_s for one in heard)
    print(
        f"\n{what}, {len(heard)} listening: {same} texts with the same samples, {different} with "
        f"others, {len(errors)} errors; longest gap {gap_s:.2f} s"
    )
    assert (different, errors) == (0, [])


def test_a_replica_on_each_host_speaks(deployed: Deployed) -> None:
    hosts = {address.rsplit(":", 1)[0] for address in deployed.serving()}
    assert hosts == {deployed.cluster.here, deployed.cluster.other.address}
    with listening(deployed.url, 2, deployed.sound) as heard:
        wait_until(lambda: heard.same >= 4, 120)
    hears([heard], "undisturbed")


def test_a_server_here_is_an_edge_too(deployed: Deployed) -> None:
    """It finds the replicas that run, and ends without them."""
    before = deployed.serving()
    command = ["-m", "cantata", "serve", "--cluster", deployed.cluster.address]
    command += ["--model", SHIPPED.name]
    with deployed.cluster.running(*command, "--port", str(PORT + 1)) as server:
        here = f"http://127.0.0.1:{PORT + 1}"
        wait_until(lambda: server.poll() is not None or is_ready(here), LOAD_S)
        assert server.poll() is None
        assert speak(here) == deployed.sound
    assert deployed.serving() == before


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=30).is_success
    except httpx.HTTPError:
        return False


def test_a_killed_replica_is_replaced_and_nobody_hears_it(deployed: Deployed) -> None:
    before = deployed.serving()
    victim = next(filter(deployed.cluster.is_elsewhere, deployed.cluster.processes(REPLICA)))
    with listening_there(deployed) as heard:
        victim.kill()
        wait_until(lambda: len(deployed.serving()) == 1, 30)
        print(f"\nreplaced after {wait_until(lambda: len(deployed.serving()) == 2, LOAD_S):.0f} s")
        assert len(before & deployed.serving()) == 1
    hears(heard, "replica killed")


def test_a_killed_raylet_takes_its_host_away_until_it_is_back(deployed: Deployed) -> None:
    lost = psutil.Process(deployed.node.pid)
    with listening_there(deployed) as heard:
        raylet = next(p for p in lost.children(recursive=True) if "raylet/raylet" in p.cmdline()[0])
        raylet.kill()
        gone_s = wait_until(lambda: len(deployed.serving()) == 1, 120)
        deployed.node.wait(60)
        deployed.node = deployed.cluster.start_node(cpus=1)
        back_s = wait_until(lambda: len(deployed.serving()) == 2, LOAD_S)
        print(
            f"\nthe replica left after {gone_s:.1f} s; another there {back_s:.0f} s after ray start"
        )
    hears(heard, "raylet killed")


def test_what_is_spoken_ends_before_everything_stops(deployed: Deployed) -> None:
    """The last test: nothing runs afterwards."""
    with listening(deployed.url, 1, deployed.sound) as heard:
        wait_until(lambda: heard.same >= 2, 120)
        stopping = threading.Thread(
            target=deployed.cluster.run,
            args=("-c", "import ray; from ray import serve; ray.init(); serve.shutdown()"),
        )
        stopping.start()
        wait_until(lambda: bool(heard.errors), 120)
    stopping.join()
    assert heard.different == 0
    assert all("ConnectError" in error or "503" in error for error in heard.errors), heard.errors
    assert deployed.cluster.processes(REPLICA) == []
