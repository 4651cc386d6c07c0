"""The process of one replica on a Ray cluster: `cantata replica`, with a supervisor that it tells
how it is."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
import yaml

from cantata.contract.data.errors import CantataError
from cantata.distributed.address import Address
from cantata.distributed.key import KEY_VARIABLE
from cantata.distributed.ray.arguments import ModelArguments, read_arguments
from cantata.distributed.ray.authentication import derive_link_secret
from cantata.distributed.ray.hosted import Actor, connect_actor, hosted
from cantata.serving.replica import ReplicaOptions, run_replica
from cantata.utils.logs import LogFormat, configure_logging

if TYPE_CHECKING:
    from cantata.distributed.replica.host import ReplicaHost

logger = logging.getLogger(__name__)


class _Report:
    def __init__(self) -> None:
        self._host: ReplicaHost | None = None

    def meet(self, host: ReplicaHost) -> None:
        """Report this host's status from now on."""
        self._host = host

    def __call__(self) -> Mapping[str, Any] | None:
        if self._host is None:
            return None
        status = self._host.status
        models = status.models.values()
        return {
            "address": str(self._host.address),
            "ready": status.ready,
            "draining": status.draining,
            "edges": status.edges,
            "places": sum(model.places for model in models),
            "in_use": sum(model.in_use for model in models),
        }


async def main() -> int:
    """Until the actor says or ends. Returns the exit code."""
    actor, startup = await connect_actor()
    model = read_arguments(ModelArguments, startup["arguments"])
    with tempfile.TemporaryDirectory(prefix="cantata-deployment-") as folder:
        try:
            await _run(actor, model, str(startup["host"]), Path(folder))
        except CantataError as error:
            actor.send_report({"error": error.message})
            return 1
    return 0


async def _run(actor: Actor, model: ModelArguments, machine: str, folder: Path) -> None:
    file = folder / "deploy.yaml"
    file.write_text(yaml.safe_dump(dict(model.deployment)), encoding="utf-8")
    os.environ[KEY_VARIABLE] = derive_link_secret(os.environ, Path.home()).hex()
    options = ReplicaOptions(
        listen=str(Address(machine, 0)),
        models=[model.model],
        deploy=[file],
        dtype=model.dtype,
        key_file=None,
        drain_timeout_s=model.drain_s,
        log_format=LogFormat.TEXT,
    )
    report = _Report()
    async with hosted(actor, report):
        await run_replica(options, logger.info, report.meet)


if __name__ == "__main__":
    configure_logging(logging.INFO, LogFormat.TEXT, "cantata:replica")
    sys.exit(uvloop.run(main()))
