"""What an operator changes while people listen."""

from __future__ import annotations

import threading

import httpx

from e2e.cluster.deployed import LOAD_S, Deployed
from e2e.cluster.listeners import TEXT
from e2e.cluster.ray_cluster import wait_until

LONGEST = len(TEXT) + 1
"""Characters of a text; the listeners' is shorter."""


def test_an_upgrade_replaces_everything_and_nobody_hears_it(deployed: Deployed) -> None:
    before, edges = deployed.serving(), deployed.edges()
    serving: list[int] = []

    def is_new() -> bool:
        now = deployed.serving()
        serving.append(len(now))
        return not now & before and deployed.whole() and refuses_longer(deployed.url)

    # One core each, for which one of the hosts has room beside what runs there.
    file = deployed.write({"min": 2, "cpus": 1}, max_input_characters=LONGEST)
    with deployed.heard("upgrade", 2) as audience:
        wait_until(lambda: audience.same >= 2, 120)
        upgrading = threading.Thread(target=deployed.deploy, args=(file,))
        upgrading.start()
        took_s = wait_until(is_new, 2 * LOAD_S)
        upgrading.join()
    print(f"every replica and edge was a new one after {took_s:.0f} s")
    assert not set(edges) & set(deployed.edges())
    assert min(serving) >= 2, "an old replica was stopped before a new one served"
    assert (audience.different, audience.unexplained) == (0, [])


def refuses_longer(url: str) -> bool:
    body = {"input": TEXT + "And more.", "response_format": "pcm"}
    return httpx.post(f"{url}/v1/audio/speech", json=body, timeout=120).status_code == 400
