"""The interface to stages on other machines; `distributed.stages` implements it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from cantata.contract.model.pipeline import EdgeSpec
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.stage_process import Death, Report, StageProcess


@dataclass(frozen=True, slots=True)
class RemoteEdge:
    """This machine's end of an edge between two machines."""

    edge: EdgeSpec
    address: str | None = None
    """A Unix socket's, where the stage downstream listens, if that runs here."""
    listener: socket.socket | None = None
    """A Unix socket to which the stage upstream connects, if that runs here."""


class RemoteStages(Protocol):
    """The stages of one pipeline whose deployment names a host."""

    def begin(self, edges: Sequence[RemoteEdge], on_leaving: Callable[[], None]) -> None:
        """Connect to the hosts, and carry what crosses these edges from now on.

        Args:
            edges: all whose ends are on different machines; their listeners are closed by `stop`.
            on_leaving: called when a host says that it is about to stop.
        """
        ...

    def disconnect_draining(self) -> None:
        """Disconnect from hosts that are about to stop. Their stages end, and are started again
        once the hosts, or others at their addresses, are there."""
        ...

    def stage(
        self,
        name: str,
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, Death], None],
    ) -> StageProcess:
        """One that is not started yet, as `StageHandle`."""
        ...

    async def stop(self) -> None:
        """End the connections, and with them what runs at their other ends."""
        ...


RemoteStagesFactory = Callable[[ServicePlan], RemoteStages]
"""For a plan with a stage that names a host."""
