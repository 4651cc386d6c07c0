"""The head is lost, and with it its host. Nothing runs after this test."""

from __future__ import annotations

import time

from e2e.cluster.deployed import EDGE, LOAD_S, NOTICED_S, REPLICA, Deployed
from e2e.cluster.ray_cluster import wait_until

SPEAKS_ON_S = 20.0
"""For so long at least, the other host serves without a head."""


def test_without_its_head_another_host_speaks_on_until_ray_gives_up(running: Deployed) -> None:
    with running.heard("head lost", 2) as audience:
        wait_until(lambda: len(running.serving()) == 2, LOAD_S)
        running.cluster.end_head()
        lost_s = time.monotonic()
        gone_s = wait_until(lambda: len(running.serving()) == 1, NOTICED_S)
        wait_until(lambda: time.monotonic() > lost_s + SPEAKS_ON_S, LOAD_S)
    print(f"the head's replica left after {gone_s:.1f} s")
    assert (audience.different, audience.unexplained) == (0, [])
    with running.heard("Ray gives up", 1) as audience:
        wait_until(lambda: not running.cluster.processes(EDGE), LOAD_S)
    print(f"the other host's edge ended {time.monotonic() - lost_s:.0f} s after the head")
    assert audience.different == 0
    wait_until(lambda: not running.cluster.processes(REPLICA), NOTICED_S)
