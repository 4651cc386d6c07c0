"""Who answers one that reaches every port of the cluster, but has neither token nor key."""

from __future__ import annotations

from collections.abc import Mapping

from e2e.cluster.deployed import EDGE, PORT, REPLICA, Deployed
from e2e.cluster.ports import Port, ask_from_the_other_host, reachable
from e2e.cluster.stranger import Answers

TELL_FIGURES = {"ray::DashboardAgent", "dashboard.py", "monitor.py"}
"""Of Ray's own processes: its metrics need no token (docs/cluster.md)."""
PUBLIC = {"/api/local_raylet_healthz": 200}
"""Of Ray's agents: whether the node is healthy."""
HAVE_TOKENS = {"gcs_server", "raylet", "ray.util.client.server", "ray::ServeController"}
"""Some of those that must be among the answers."""


def test_only_edges_serve_strangers(deployed: Deployed) -> None:
    ports = reachable(deployed.cluster)
    answers = dict(zip(ports, ask_from_the_other_host(deployed.cluster, ports), strict=True))
    for port, told in answers.items():
        print(f"{port.host}:{port.number} {port.who}: {how(port, told)}")
    assert [port for port, told in answers.items() if how(port, told) == "open"] == []
    hosts = {deployed.cluster.here, deployed.cluster.other.address}
    assert {port.host for port in ports if port.who == REPLICA} == hosts
    assert {port.number for port in ports if port.who == EDGE} == {PORT}
    assert {port.who for port in ports} >= HAVE_TOKENS
    assert {port.host for port in ports if port.who == "raylet"} == hosts


def how(port: Port, told: Answers) -> str:
    """How a stranger is answered; `open`: as nobody should be."""
    if port.who == EDGE and told.paths["/health"] == 200 and not told.calls:
        return "serves"
    if port.who == REPLICA and not told.paths and not told.calls:
        return "wants the key" if "the same key" in told.link else "open"
    if port.who in TELL_FIGURES and told.figures and not told.calls:
        return "tells figures"
    return "wants the token" if wants_token(told.paths, told.calls) else "open"


def wants_token(paths: Mapping[str, int], calls: Mapping[str, str]) -> bool:
    asked = {status for path, status in paths.items() if PUBLIC.get(path) != status}
    refused = asked <= {401} and set(calls.values()) <= {"UNAUTHENTICATED"}
    return refused and bool(asked or calls)
