"""Stage hosts for tests, and deployments that use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from cantata.config import Deployment
from host_process import HostProcess, process_on_host

PORT = 8200


def stage_host(number: int) -> AbstractContextManager[HostProcess]:
    """One that is not started yet, and is ended after the block.

    Args:
        number: as `namespaces.host`'s.
    """
    return process_on_host(number, PORT, "tiny_talker.stage_host", "{address}")


def placed(deployment: Deployment, hosts: Mapping[str, str]) -> Deployment:
    """The same with these stages on these hosts."""
    stages = {
        name: stage.model_copy(update={"host": hosts.get(name)})
        for name, stage in deployment.stages.items()
    }
    return deployment.model_copy(update={"stages": stages})


def spread_over(hosts: Sequence[str], deployment: Deployment) -> Deployment:
    """The same with one stage after the other on each host in turn: every edge crosses."""
    turns = {name: hosts[n % len(hosts)] for n, name in enumerate(deployment.stages)}
    return placed(deployment, turns)
