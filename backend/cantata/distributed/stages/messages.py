"""The messages of a server and a stage host.

The server connects, names its pipeline, then opens a stream for each stage and for each edge that
crosses. On a stage's stream it sends what a stage's control channel carries; the host answers the
same way, and ends the stream, with a `Fault` if the stage did not start, once nothing of the
process is left. The server ends its side to have the process ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from cantata.contract.data.errors import StageDied
from cantata.contract.process.messages import Pong, StageCapacity
from cantata.distributed.link.frames import FIRST_OF_USER
from cantata.pipeline.stage_process import Death
from cantata.pipeline.watchdog import Hang

_FIRST = FIRST_OF_USER + 64
"""Away from the kinds between edges and replicas: so the wrong sort of peer is recognized."""


class StageFrameKind(IntEnum):
    """The kind of a frame; its body is of the class that is named below it."""

    PIPELINE = _FIRST
    """`PipelineCommand`, on no stream, first of all."""
    LAUNCH = _FIRST + 1
    """`LaunchCommand`: opens the stream of a stage."""
    EDGE_THERE = _FIRST + 2
    """`EdgeName`: opens the stream of an edge to a stage of the host."""
    EDGE_BACK = _FIRST + 3
    """`EdgeName`: opens the stream of an edge from a stage of the host."""
    CHUNKS = _FIRST + 4
    """`ipc.encoded.EncodedChunks`, on an edge."""
    COMMAND = _FIRST + 5
    """`translation.StageCommand`"""
    PING = _FIRST + 6
    """`contract.process.messages.Ping`; answered by `PONG`, then `ANSWERED`."""
    DRAIN = _FIRST + 7
    """`DrainCommand`"""
    READY = _FIRST + 8
    """`StageReady`"""
    EVENT = _FIRST + 9
    """`translation.StageEvent`"""
    PONG = _FIRST + 10
    """`PongEvent`: each second, and when asked."""
    ANSWERED = _FIRST + 11
    """`contract.process.messages.Ping`: this one."""
    DIED = _FIRST + 12
    """`StageDeath`, the last of a stage that was ready."""
    LEAVING = _FIRST + 13
    """No body, on no stream: the host is about to stop, and waits until the server has left."""


@dataclass(frozen=True, slots=True)
class PipelineCommand:
    """What a link's stages belong to."""

    model: str
    """Name of its plug-in, which the host has installed, too."""
    checkpoint: str | None
    """Its folder, under the same path on both machines; None: the one that ships with the
    plug-in."""
    files: str
    """`identity.hash_files` of the folder."""
    versions: Mapping[str, str]
    """`identity.versions`"""
    deployment: Mapping[str, Any]
    """As in a deployment file."""
    here: tuple[str, ...]
    """The stages that this host runs."""


@dataclass(frozen=True, slots=True)
class LaunchCommand:
    """Start a stage's process."""

    stage: str
    deadline_s: float
    """For it to become ready."""


@dataclass(frozen=True, slots=True)
class EdgeName:
    """One edge of the pipeline."""

    source: str
    """`stage.port`"""
    target: str


@dataclass(frozen=True, slots=True)
class DrainCommand:
    """Let the stage finish what it has, then end."""

    deadline_s: float


@dataclass(frozen=True, slots=True)
class StageReady:
    """The stage accepts requests."""

    capacity: StageCapacity
    pid: int
    """On its host."""


@dataclass(frozen=True, slots=True)
class PongEvent:
    """How the stage is, and its process."""

    pong: Pong
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class StageDeath:
    """`pipeline.stage_process.Death`"""

    why: str
    exit_code: int | None
    hang: Hang | None
    at_work_on: Mapping[str, int]
    alone: bool
    held: tuple[str, ...]

    @classmethod
    def of(cls, death: Death) -> StageDeath:
        held = tuple(death.held)
        why, hang = death.error.message, death.hang
        return cls(why, death.exit_code, hang, death.at_work_on, death.alone, held)

    def death(self, host: str) -> Death:
        error = StageDied(f"{self.why} (on {host})")
        held = frozenset(self.held)
        return Death(error, self.exit_code, self.hang, self.at_work_on, self.alone, held)
