"""How a stage's process is made: forked from a server process that has imported what it needs.

Importing vLLM takes several times as long as loading a small model. Python's fork server imports
it once, beside the api's own start, and every stage is forked from it. So the first stages do not
import torch twice, and a restarted stage imports nothing.

The fork server only imports: it runs no tensors and starts no threads, so that nothing is forked
in the middle of an operation. It exits with the api. Stages on a GPU are spawned anew, because
drivers do not survive a fork.
"""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Iterable, Sequence
from multiprocessing.process import BaseProcess
from typing import Literal

from cantata.config import KINDS, ArDeployment, StageDeployment
from cantata.contract.model.pipeline import StageSpec
from cantata.ipc.fork_server import complete, is_possible
from cantata.stages.process.launch import StageLaunch, run

METHOD: Literal["forkserver", "spawn"] = "forkserver"
"""Of stages on a CPU. `spawn` is for tests that need a stage with an environment of its own."""
_FORKED, _SPAWNED = multiprocessing.get_context("forkserver"), multiprocessing.get_context("spawn")


def preload(stages: Iterable[tuple[StageSpec, StageDeployment]]) -> None:
    """Let the fork server import what those of these stages need that run here; as
    `fork_server.complete`."""
    modules = []
    for spec, deployment in stages:
        if deployment.host is None and forks(deployment):
            modules += _list_modules(spec, deployment)
    complete(modules)


def _list_modules(spec: StageSpec, deployment: StageDeployment) -> list[str]:
    if isinstance(deployment, ArDeployment) and deployment.engine == "graphs":
        assert spec.plain is not None, "checked with the deployment"
        return ["cantata.stages.ar.graph_stage", spec.plain.partition(":")[0]]
    imports = KINDS[spec.kind].imports
    return [*([] if imports is None else [imports]), spec.factory.partition(":")[0]]


def forks(deployment: StageDeployment) -> bool:
    """Whether this stage is forked. Where there can be no fork server, every stage is spawned."""
    return METHOD == "forkserver" and deployment.device == "cpu" and is_possible()


def spawn(launches: Sequence[StageLaunch], controls: Sequence[socket.socket]) -> BaseProcess:
    """A process that will run a stage, or several; blocks until it has started, also while the fork
    server still imports.

    Args:
        controls: for each stage, its end of the channel to the server.

    Raises:
        OSError: no process or descriptor is available.
    """
    # Never a plain fork: the child would inherit the server's threads, sockets and event loop.
    first = launches[0]
    make = _FORKED.Process if forks(first.deployment) else _SPAWNED.Process
    process = make(target=run, args=(launches, controls), name=first.title, daemon=True)
    try:
        process.start()
    except EOFError as error:
        raise OSError("the fork server ended before it could make the process") from error
    return process
