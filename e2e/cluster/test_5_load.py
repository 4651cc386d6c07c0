"""As many replicas as are wanted, on the cluster that was shut down before: Ray takes a deployment
again. Its edge is on the other host now."""

from __future__ import annotations

from e2e.cluster.deployed import LOAD_S, PORT, THERE, Deployed
from e2e.cluster.ray_cluster import wait_until


def test_a_replica_comes_with_listeners_and_goes_without_a_sound(running: Deployed) -> None:
    # One place each, however fast the machine is, so that two listeners want two replicas.
    bounds = {"min": 1, "max": 2, "fill": 1.0}
    file = running.write(bounds, edges={"replicas": 1, "node": THERE}, slots=1)
    running.deploy_impatiently(file)
    running.url = f"http://{running.cluster.other.address}:{PORT}"
    wait_until(lambda: len(running.serving()) == 1, LOAD_S)
    with running.heard("scaled down", 1) as stays:
        with running.heard("scaled up", 1) as leaves:
            more_s = wait_until(lambda: len(running.serving()) == 2, LOAD_S)
        fewer_s = wait_until(lambda: len(running.serving()) == 1, LOAD_S)
        heard = stays.same
        wait_until(lambda: stays.same >= heard + 2, 120)
    print(
        f"two replicas {more_s:.0f} s after the second listener, one {fewer_s:.0f} s after it left"
    )
    for audience in (stays, leaves):
        assert (audience.different, audience.unexplained) == (0, [])
