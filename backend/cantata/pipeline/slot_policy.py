"""Admission by slots: as many listeners as play without gaps, a short queue, then rejection."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from cantata.contract.data.errors import StageDied
from cantata.contract.service import AdmissionReport, SpeechChunk
from cantata.pipeline.admission import Demand, Permit, WarmUp
from cantata.pipeline.model import warm_up_together
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.scheduling.admission import Admission, AdmissionPermit, QueueLimits
from cantata.scheduling.playout_buffers import PlayoutBuffers

MAX_WAIT_S = 8.0
"""Longest wait for a place; voice agents give up after ten seconds."""


class SlotPolicy:
    """Implements `AdmissionPolicy`: as many requests as every stage keeps up with, at most its
    slots; as many may wait as there are slots."""

    def __init__(self, name: str, orchestrator: Orchestrator) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self.text_executor = TextExecutor()
        self.playout_buffers = PlayoutBuffers(0.0)
        """The sound that listeners still have to play."""
        self._admission: Admission | None = None

    @property
    def report(self) -> AdmissionReport:
        if self._admission is None:
            return AdmissionReport(0, 0, 0, 0)
        return replace(
            self._admission.report,
            slots=self.orchestrator.slots,
            slots_in_use=self.orchestrator.slots_in_use,
            quarantined=self.orchestrator.quarantined,
        )

    async def start(self, warm_up: WarmUp) -> None:
        await self.orchestrator.start()
        slots = self.orchestrator.slots
        self.playout_buffers = PlayoutBuffers(self.orchestrator.frame_period_s)
        deadline_s = time.monotonic() + self.orchestrator.start_timeout_s
        for requests in (1, slots):
            await warm_up_together(warm_up, requests, deadline_s, self.name)
        self._admission = Admission(
            self.orchestrator.places,
            QueueLimits(max_waiting=slots, max_wait_s=MAX_WAIT_S),
            slots=slots,
            has_headroom=lambda: self.playout_buffers.has_headroom(time.monotonic()),
        )
        self.orchestrator.on_places(self._admission.resize)

    async def stop(self, deadline_s: float) -> None:
        self.text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        if self._admission is not None and self.orchestrator.ready:
            self._admission.check()

    async def wait_until_ready(self, deadline_s: float = math.inf) -> None:
        """Return at once: nobody waits for a model that speaks while it loads."""
        self._get_admission()

    @asynccontextmanager
    async def admit(self, demand: Demand) -> AsyncIterator[Permit]:
        """Wait in the queue, if need be."""
        admission = self._get_admission()
        async with (
            admission.admit(batch=demand.batch, stretch=demand.stretch) as permit,
            # A stage may have died meanwhile.
            self.orchestrator.track_request(ready_within_s=MAX_WAIT_S),
        ):
            yield _SlotPermit(permit, is_spoken=demand.is_spoken)

    def look_again(self) -> None:
        """A running stream received sound: another request may be able to start."""
        if self._admission is not None:
            self._admission.look_again()

    def _get_admission(self) -> Admission:
        if self._admission is None or not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")
        return self._admission


class _SlotPermit:
    """Counts as beginning, which delays others, until the first of what its client waits for."""

    def __init__(self, permit: AdmissionPermit, *, is_spoken: bool) -> None:
        self._permit, self._is_spoken = permit, is_spoken

    def on_wait(self) -> None: ...

    def on_event(self, event: object) -> None:
        if isinstance(event, SpeechChunk) or not self._is_spoken:
            self._permit.mark_first_sound()

    def on_end(self) -> None: ...
