"""One stage process as its pipeline sees it, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from cantata.contract.data.errors import StageDied
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Output,
    Pong,
    Register,
    StageCapacity,
    StepMeasured,
)
from cantata.pipeline.watchdog import Hang

Report = Output | Failed | Aborted | StepMeasured | Pong
"""Messages of a running stage."""


class StageState(Enum):
    """A stage process's state; it only moves forwards."""

    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"
    """Its machine is about to stop: what has begun goes on, and nothing else may begin."""
    DRAINING = "draining"
    ENDED = "ended"

    @property
    def is_running(self) -> bool:
        """Whether the process works on requests."""
        return self in (StageState.READY, StageState.LEAVING)


@dataclass(frozen=True, slots=True)
class Death:
    """How a stage process ended that was not asked to."""

    error: StageDied
    """The error that its requests get."""
    exit_code: int | None
    hang: Hang | None
    """Why the server killed it, if it did."""
    at_work_on: Mapping[str, int]
    """The requests in its last call, with the frames that it had made of each."""
    alone: bool
    """The call was about one request alone."""
    held: frozenset[str]
    """Every request that it held."""


class StageProcess(Protocol):
    """One process, from its start to its end. A stage that is started again gets a new one."""

    name: str
    host: str
    """Address of the stage host that runs it; empty: it runs on this machine."""
    state: StageState
    pid: int | None
    """Process id on its machine, kept after the process has ended; None before `start`."""
    startup_s: float
    """From `start` to readiness; 0 until then."""
    exit_code: int | None
    """Known once the process has ended."""
    last_pong: Pong | None

    @property
    def rss_bytes(self) -> int:
        """Resident memory of the process; 0: unknown."""
        ...

    async def wait_until_possible(self) -> None:
        """Return once there is a machine to start it on."""
        ...

    async def start(self, deadline_s: float) -> StageCapacity:
        """Start the process and wait until it has loaded its model.

        Raises:
            StageDied: it ended instead, or was not ready in time; nothing is left of it.
            OSError: no descriptor or process is available.
        """
        ...

    async def send(self, message: Register | Extend | Abort | Credit) -> None:
        """Send one message. Raises StageDied: the process is gone."""
        ...

    async def get_counts(self) -> Mapping[str, int]:
        """What the stage holds now, by name; raises as `ask` does."""
        ...

    async def ask(self, deadline_s: float = ...) -> Pong:
        """How the stage is now.

        Raises:
            StageDied: the process is gone.
            TimeoutError: it does not answer in time.
        """
        ...

    async def stop(self, deadline_s: float) -> None:
        """Drain until the deadline, then end the process."""
        ...
