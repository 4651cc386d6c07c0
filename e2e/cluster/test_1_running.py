"""Replicas and edges that Ray has placed, undisturbed."""

from __future__ import annotations

import httpx

from e2e.cluster.deployed import LOAD_S, PORT, SHIPPED, Deployed
from e2e.cluster.listeners import speak
from e2e.cluster.ray_cluster import wait_until


def test_a_replica_on_each_host_speaks(deployed: Deployed) -> None:
    hosts = {address.rsplit(":", 1)[0] for address in deployed.serving()}
    assert hosts == {deployed.cluster.here, deployed.cluster.other.address}
    with deployed.heard_there("undisturbed") as audience:
        wait_until(lambda: audience.same >= 4, 120)
    assert (audience.different, audience.unexplained) == (0, [])


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
