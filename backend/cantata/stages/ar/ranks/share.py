"""A rank's share of a model: what it is told first, and how it is loaded."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cantata.config import ArDeployment
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.stage import Stage
from cantata.stages.common.ranks import LOOPBACK, join

MODULE = "cantata.stages.ar.ranks.main"
"""Of the other ranks' processes."""


@dataclass(frozen=True, slots=True)
class LoadShare:
    """The first message: what a rank loads."""

    title: str
    """Title of the process."""
    spec: StageSpec
    checkpoint: Path
    deployment: ArDeployment
    rank: int
    store_port: int
    """Where the ranks find each other, on this machine's loopback."""


@dataclass(frozen=True, slots=True)
class RankCall:
    """A call of a stage's method, for every rank."""

    method: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


def load_share(load: LoadShare, listener: socket.socket | None) -> Stage:
    """Make this process a rank and build its stage; returns when every rank has.

    Args:
        listener: rank 0's socket on the store's port; None for the others.

    Raises:
        CantataError: as `stages.ar.build_stage`.
    """
    from cantata.stages.ar import build_share

    deployment, rank = load.deployment, load.rank
    device = f"{deployment.device}:{rank}" if deployment.on_gpu else deployment.device
    # What vLLM's executor for ranks that others start reads.
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = LOOPBACK, str(load.store_port)
    join(rank, deployment.tensor_parallel, device, load.store_port, listener)
    return build_share(load.spec, load.checkpoint, deployment)
