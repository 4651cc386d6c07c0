"""What Ray's actors do with the processes that they host; skipped where Ray is not installed."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Ray itself uses what pydantic deprecates
    from cantata.distributed.ray import deployments
    from cantata.distributed.ray.serve_api import DirectoryGone

from cantata.config.cluster import ReplicasOptions
from cantata.contract.data.errors import ConfigError, StageDied
from cantata.distributed.ray.arguments import ModelArguments, as_plain
from cantata.distributed.ray.membership import QueueDepth

PROCESS = """
import asyncio, signal, sys
from cantata.distributed.ray.hosted import hosted, connect_actor

async def main():
    actor, told = await connect_actor()
    if told["arguments"]["model"] == "missing":
        actor.send_report({"error": "there is no such model"})
        return 1
    ending, told_twice, drained, said = asyncio.Event(), asyncio.Event(), [], []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ending.set)

    def report():
        said.append(None)
        if ending.is_set():
            drained.append(None)
        if len(drained) == 3:
            told_twice.set()
        figures = {"places": 8, "in_use": 3, "edges": len(said)}
        return {"address": "h:1", "ready": True, "draining": ending.is_set(), **figures}

    async with hosted(actor, report):
        await told_twice.wait()
    return 0

sys.exit(asyncio.run(main()))
"""


class KnownDirectory:
    """Remembers what replicas say."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []
        self.refusals_left = 0
        self.edges = 0
        self._asked = asyncio.Event()

    async def announce(self, id: str, address: str, model: str, *, serving: bool) -> QueueDepth:
        self._asked.set()
        if self.refusals_left:
            self.refusals_left -= 1
            raise DirectoryGone("it is starting")
        self.heard.append((address, model, serving))
        return QueueDepth(1.5, self.edges)

    async def hears(self, *what: object) -> None:
        async with asyncio.timeout(60):
            while what not in self.heard:
                self._asked.clear()
                await self._asked.wait()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KnownDirectory:
    (tmp_path / "replica_for_a_test.py").write_text(PROCESS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    known = KnownDirectory()
    monkeypatch.setattr(deployments, "DirectoryHandle", lambda: known)
    monkeypatch.setattr(deployments, "get_node_address", lambda: "10.0.0.1")
    monkeypatch.setattr(deployments.Replica, "module", "replica_for_a_test")
    monkeypatch.setattr(deployments, "ANNOUNCE_EVERY_S", 0.02)
    return known


def arguments(model: str = "a") -> Mapping[str, Any]:
    return as_plain(
        ModelArguments(name="a", model=model, deployment={}, replicas=ReplicasOptions(), drain_s=30)
    )


async def started(model: str = "a") -> deployments.Replica:
    replica = deployments.Replica.__new__(deployments.Replica)
    await replica.__init__(arguments(model))  # type: ignore[misc]
    return replica


async def test_a_replica_tells_its_places_until_it_is_drained(directory: KnownDirectory) -> None:
    replica = await started()
    await directory.hears("h:1", "a", True)
    await replica.check_health()
    figures = await replica.record_autoscaling_stats()
    assert figures == {"places": 8.0, "in_use": 3.0, "waiting": 1.5}
    directory.refusals_left = 3
    directory.heard.clear()
    await directory.hears("h:1", "a", True)
    assert directory.refusals_left == 0
    await vars(replica)["__del__"]()
    assert directory.heard[-1] == ("h:1", "a", False)
    with pytest.raises(StageDied, match="ended with 0"):
        await replica.check_health()


async def test_a_replica_whose_process_dies_or_hangs_is_unhealthy(
    directory: KnownDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await started()
    with monkeypatch.context() as patch:
        patch.setattr(deployments, "_HANGS_AFTER_S", -1.0)
        with pytest.raises(StageDied, match="says nothing any more"):
            await replica.check_health()
    replica._process.kill()
    async with asyncio.timeout(60):
        while replica._process.ended is None:
            await replica._process.updates()
    with pytest.raises(StageDied, match="ended with -9"):
        await replica.check_health()
    await vars(replica)["__del__"]()


async def test_a_replica_is_up_once_the_edges_have_found_it(directory: KnownDirectory) -> None:
    """An older one is stopped at that moment."""
    directory.edges = 3
    replica = await started()
    assert replica._process.last_report["edges"] >= directory.edges
    await vars(replica)["__del__"]()


async def test_an_edge_that_does_not_come_is_not_waited_for(
    directory: KnownDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "MET_WITHIN_S", 0.1)
    directory.edges = 1_000
    replica = await started()
    await replica.check_health()
    await vars(replica)["__del__"]()


async def test_why_a_replica_cannot_start_is_told(directory: KnownDirectory) -> None:
    with pytest.raises(ConfigError, match="there is no such model"):
        await started("missing")


async def test_nothing_runs_on_a_machine_whose_ray_has_no_token(
    directory: KnownDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE")
    with pytest.raises(ConfigError, match="this machine: Ray runs without token"):
        await started()
