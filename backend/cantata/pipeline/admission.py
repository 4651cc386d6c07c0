"""Admission to a pipeline: one protocol, and two policies.

By slots (`slot_policy`), for what is heard: a listener needs a share of each second, so only as
many run as play without gaps. By steps (`step_policy`), for what is waited for: pictures, and
answers written among them, are admitted if a forecast says that they will be done in time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from cantata.contract.model.conversation import AnswerSteps
from cantata.contract.service import AdmissionReport, RunObserver
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.scheduling.step_plan import JobView

WarmUp = Callable[[], Coroutine[None, None, None]]
"""Begins requests and discards them after some steps: all code has run then, and the stages have
measured their steps."""
Permit = RunObserver[Any]
"""Held by an admitted request. It observes the request's events: some make room for others."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a planned request takes of its pipeline."""

    request_id: str
    batch: bool = False
    """A file render, without a listener."""
    stretch: float = 1.0
    """Seconds of the model's sound that its listener plays in one second."""
    is_spoken: bool = True
    """Its first sound is what its client waits for, not its first event."""
    job: JobView | AnswerSteps | None = None
    """The steps of a picture, or of an answer that is written among pictures."""


class AdmissionPolicy(Protocol):
    """Starts one pipeline, and admits requests to it."""

    @property
    def name(self) -> str:
        """The model's."""
        ...

    @property
    def orchestrator(self) -> Orchestrator:
        """The pipeline's."""
        ...

    @property
    def text_executor(self) -> TextExecutor: ...

    @property
    def report(self) -> AdmissionReport:
        """Running and waiting requests; no places before `start` has finished."""
        ...

    async def start(self, warm_up: WarmUp) -> None:
        """Start the stages, warm them up and measure what they can serve.

        Raises:
            ChunkTimeout: the stages make nothing, also within the deployment's `start_timeout_s`.
            StageDied: one of them cannot start.
        """
        ...

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        ...

    def check_room(self) -> None:
        """Reject a live request that there is no room for; takes microseconds. Raises Overloaded:
        there is none."""
        ...

    async def wait_until_ready(self, deadline_s: float = math.inf) -> None:
        """Return once the pipeline runs.

        Args:
            deadline_s: when the caller stops waiting, by the monotonic clock.

        Raises:
            Overloaded: enough requests wait for that already.
            StageDied: it does not run (`StartFailed`: nor will it).
        """
        ...

    def admit(self, demand: Demand) -> AbstractAsyncContextManager[Permit | None]:
        """Hold a place for the time of the block.

        Raises:
            InvalidRequest: it takes longer than its caller waits, even alone.
            Overloaded: there is no place in time.
            StageDied: a stage is down.
        """
        ...
