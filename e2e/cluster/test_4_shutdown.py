"""`serve shutdown`: nothing of Cantata runs afterwards; Ray does."""

from __future__ import annotations

import threading

from e2e.cluster.deployed import REPLICA, Deployed
from e2e.cluster.ray_cluster import wait_until


def test_what_is_spoken_ends_before_everything_stops(deployed: Deployed) -> None:
    with deployed.heard("shutdown", 1) as audience:
        wait_until(lambda: audience.same >= 2, 120)
        stopping = threading.Thread(
            target=deployed.cluster.run,
            args=("-c", "import ray; from ray import serve; ray.init(); serve.shutdown()"),
        )
        stopping.start()
        wait_until(lambda: bool(audience.errors), 120)
    stopping.join()
    assert audience.different == 0
    assert all("ConnectError" in error or "503" in error for error in audience.errors)
    assert deployed.cluster.processes(REPLICA) == []
