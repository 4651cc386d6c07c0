"""What listeners hear of faults, and what Ray and the edges do about them."""

from __future__ import annotations

import httpx
import psutil
import pytest

from e2e.cluster.deployed import LOAD_S, NOTICED_S, Deployed
from e2e.cluster.listeners import unread
from e2e.cluster.ray_cluster import wait_until

CROWD = 11


def test_a_killed_stage_is_started_again_and_ends_only_what_it_spoke(deployed: Deployed) -> None:
    there = deployed.cluster.other.address
    [before] = [s for s in deployed.stages(there) if s["stage"] == "decoder"]
    with deployed.heard_there("stage killed") as audience:
        psutil.Process(before["pid"]).kill()
        back_s = wait_until(lambda: is_another(deployed, there, before["pid"]), NOTICED_S)
        wait_until(deployed.whole, LOAD_S)
        heard = audience.same
        wait_until(lambda: audience.same >= heard + 2, 120)
    print(f"another stage after {back_s:.1f} s")
    assert audience.different == 0
    assert len(audience.unexplained) <= len(audience), "one request of each listener"
    restarts = deployed.metrics("cantata_stage_restarts_total")
    assert [n for labels, n in restarts.items() if there in labels and "decoder" in labels] == [1]


def is_another(deployed: Deployed, host: str, pid: int) -> bool:
    return any(
        one["stage"] == "decoder" and one["alive"] and one["pid"] != pid
        for one in deployed.stages(host)
    )


def test_a_pulled_cable_is_not_heard_and_moves_nothing(deployed: Deployed) -> None:
    before = deployed.serving()
    with deployed.heard_there("cable pulled") as audience:
        deployed.cluster.other.pull()
        gone_s = wait_until(lambda: len(deployed.serving()) == 1, NOTICED_S)
        heard = audience.same
        wait_until(lambda: audience.same >= heard + 2, 120)
        deployed.cluster.other.plug_in()
        back_s = wait_until(deployed.whole, LOAD_S)
    print(f"the replica left after {gone_s:.1f} s, and was back {back_s:.1f} s after the cable")
    assert (audience.different, audience.unexplained) == (0, [])
    assert deployed.serving() == before
    assert set(deployed.metrics("cantata_replica_up").values()) == {1}


def test_a_killed_replica_is_replaced_and_nobody_hears_it(deployed: Deployed) -> None:
    before = deployed.serving()
    with deployed.heard("replica killed", CROWD) as audience:
        wait_until(deployed.elsewhere, NOTICED_S)
        deployed.replica_there().kill()
        wait_until(lambda: len(deployed.serving()) == 1, NOTICED_S)
        print(f"\nreplaced after {wait_until(deployed.whole, LOAD_S):.0f} s")
        assert len(before & deployed.serving()) == 1
    assert (audience.different, audience.unexplained) == (0, [])
    assert deployed.cluster.logged("the second replica was lost") == 0
    up = deployed.metrics("cantata_replica_up")
    assert dict.fromkeys(up, 1.0) == up
    assert len(up) == 2


def test_a_killed_edge_ends_its_own_listeners_who_find_the_other_one(deployed: Deployed) -> None:
    with deployed.heard("edge killed", 4) as audience:
        with unread(deployed.url) as stream:
            [victim] = [one for one in deployed.edges() if has_client(one, stream.client)]
            victim.kill()
            with pytest.raises(httpx.TransportError):
                list(stream.rest)
        replaced_s = wait_until(lambda: is_replaced(deployed, victim), LOAD_S)
    print(f"another edge listened after {replaced_s:.0f} s")
    assert audience.different == 0
    assert len(audience.unexplained) <= len(audience), "one request of each listener"


def has_client(edge: psutil.Process, client: tuple[str, int]) -> bool:
    return any(one.raddr == client for one in edge.net_connections("tcp4"))


def is_replaced(deployed: Deployed, edge: psutil.Process) -> bool:
    return edge not in deployed.edges() and deployed.whole()


def test_a_killed_raylet_takes_its_host_away_until_it_is_back(deployed: Deployed) -> None:
    lost = psutil.Process(deployed.node.pid)
    with deployed.heard_there("raylet killed") as audience:
        raylet = next(p for p in lost.children(recursive=True) if "raylet/raylet" in p.cmdline()[0])
        raylet.kill()
        gone_s = wait_until(lambda: len(deployed.serving()) == 1, 120)
        deployed.node.wait(60)
        deployed.start_node()
        back_s = wait_until(deployed.whole, LOAD_S)
    print(f"the replica left after {gone_s:.1f} s; another there {back_s:.0f} s after ray start")
    assert (audience.different, audience.unexplained) == (0, [])
