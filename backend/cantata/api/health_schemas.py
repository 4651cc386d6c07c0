"""The answers of `/health` and `/ready`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cantata.api.schemas import WireModel


class StageHealth(WireModel):
    """One stage process."""

    model: str
    stage: str
    pid: int
    alive: bool
    startup_s: float
    rss_bytes: int
    counts: dict[str, int]
    """What the stage holds, by kind; all zero when idle."""
    restarts: int
    """Restarts since the server's start, including failed attempts."""
    last_death: str | None = None
    """How its process ended the last time, if it did."""
    replica: str | None = None
    """Address of the replica that it belongs to; None: of this server."""
    host: str | None = None
    """Address of the stage host that runs it; None: it runs where its pipeline does."""


class ReplicaHealth(WireModel):
    """A replica that this server uses."""

    address: str
    ready: bool
    draining: bool
    streams: int
    """This server's open requests on the replica."""
    lost: int
    """How often the link to the replica was lost."""
    message: str | None = None
    """What is wrong with the replica."""


class Health(WireModel):
    """GET /health."""

    status: Literal["starting", "ok", "degraded", "stopping", "failed", "stopped"]
    version: str
    uptime_s: float
    default_model: str
    stages: list[StageHealth]
    replicas: list[ReplicaHealth] = Field(default_factory=list)
    """Empty unless the models run elsewhere."""
    message: str | None = None
    """Why it failed, or what an operator should look at."""


class Readiness(WireModel):
    """GET /ready, when it is."""

    ready: Literal[True] = True
