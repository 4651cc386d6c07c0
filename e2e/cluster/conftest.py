"""One cluster for all tests, which take it through its life in the order of their files.

The other end-to-end tests' fixtures, which need browsers, are not used here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.deployed import EDGES, HERE, LOAD_S, REPLICA_CPUS, THERE, Deployed
from e2e.cluster.listeners import speak
from e2e.cluster.ray_cluster import ray_cluster, wait_until
from namespaces import WHY_NOT, are_possible


@pytest.fixture(scope="session")
def running() -> Iterator[Deployed]:
    if not are_possible():
        pytest.skip(WHY_NOT)
    folder = Path(tempfile.mkdtemp(prefix="rc"))
    with ray_cluster(folder / "r") as cluster:
        began_s = time.monotonic()
        cluster.start_head(REPLICA_CPUS + EDGES, HERE)
        one = Deployed(cluster, cluster.start_node(REPLICA_CPUS + 1, THERE), folder)
        print(f"\nRay after {time.monotonic() - began_s:.0f} s, {cluster.cpu_s():.0f} CPU seconds")
        one.deploy(one.write({"min": 2}))
        wait_until(one.whole, LOAD_S)
        print(
            f"\ntwo replicas and two edges after {time.monotonic() - began_s:.0f} s, "
            f"{cluster.cpu_s():.0f} CPU seconds"
        )
        one.sound = speak(one.url)
        yield one


@pytest.fixture
def deployed(running: Deployed) -> Deployed:
    """Whole, whatever the test before has broken."""
    wait_until(running.whole, LOAD_S)
    return running
