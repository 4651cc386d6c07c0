"""What every served model has: a pipeline in stage processes, and admission to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace

from cantata.contract.data.errors import StageDied
from cantata.contract.service import AdmissionReport
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.pipeline.warm_up import warm_up_together
from cantata.scheduling.admission import Admission, AdmissionPermit, QueueLimits
from cantata.scheduling.playout_buffers import PlayoutBuffers

MAX_WAIT_S = 8.0
"""Longest wait for a place; voice agents give up after ten seconds."""


class ServedPipeline:
    """One model's pipeline, the text work in front of it, and the places in it.

    Args:
        name: of the model.
        orchestrator: of its pipeline.
    """

    def __init__(self, name: str, orchestrator: Orchestrator) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self.text_executor = TextExecutor()
        self.playout_buffers = PlayoutBuffers(0.0)
        """Of sound that listeners still have to play."""
        self._admission: Admission | None = None

    @property
    def report(self) -> AdmissionReport:
        """Running and waiting requests; no places before `start` has finished."""
        if self._admission is None:
            return AdmissionReport(0, 0, 0, 0)
        slots, in_use = self.orchestrator.slots, self.orchestrator.slots_in_use
        quarantined = self.orchestrator.quarantined
        return replace(
            self._admission.report, slots=slots, slots_in_use=in_use, quarantined=quarantined
        )

    async def start(self, warm_up: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start the stages, warm them up and measure what they can serve.

        Admits as many requests as every stage keeps up with, at most its slots; as many may
        wait as there are slots.

        Args:
            warm_up: begins one request and discards it after some steps: all code has run then,
                and the stages have measured their steps.

        Raises:
            ChunkTimeout: the stages make nothing, also within the deployment's `start_timeout_s`.
            StageDied: one of them cannot start.
        """
        await self.orchestrator.start()
        slots = self.orchestrator.slots
        self.playout_buffers = PlayoutBuffers(self.orchestrator.frame_period_s)
        deadline_s = time.monotonic() + self.orchestrator.start_timeout_s
        for requests in (1, slots):
            await warm_up_together(warm_up, requests, deadline_s, self.name)
        limits = QueueLimits(max_waiting=slots, max_wait_s=MAX_WAIT_S)
        self._admission = Admission(
            self.orchestrator.places,
            limits,
            slots=slots,
            has_headroom=lambda: self.playout_buffers.has_headroom(time.monotonic()),
        )
        self.orchestrator.on_places(self._admission.resize)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        self.text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_ready(self) -> None:
        """Raises StageDied if the model is not running."""
        if self._admission is None or not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")

    def check_room(self) -> None:
        """Reject a live request that the queue has no room for; takes microseconds.

        Raises:
            Overloaded: the queue is full.
        """
        if self._admission is not None and self.orchestrator.ready:
            self._admission.check()

    @asynccontextmanager
    async def admit(
        self, *, batch: bool = False, stretch: float = 1.0
    ) -> AsyncIterator[AdmissionPermit]:
        """Hold a place in a pipeline whose stages all run; as `Admission.admit`.

        Raises:
            Overloaded: no place in time.
            StageDied: a stage is down.
        """
        self.check_ready()
        assert self._admission is not None
        async with self._admission.admit(batch=batch, stretch=stretch) as permit:
            await self.orchestrator.until_ready(MAX_WAIT_S)  # a stage may have died meanwhile
            with self.orchestrator.track_request():
                yield permit

    def look_again(self) -> None:
        """A running stream received sound: another request may be able to start."""
        if self._admission is not None:
            self._admission.look_again()
