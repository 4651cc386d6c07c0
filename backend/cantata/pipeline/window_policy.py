"""Admission of windows of speech: speakers at once or not at all, files when a slot is free."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cantata.contract.data.errors import Overloaded, StageDied
from cantata.contract.service import AdmissionReport
from cantata.pipeline.admission import Demand, WarmUp
from cantata.pipeline.model import RETRY_S, ModelStart
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.scheduling.admission import BATCH, LIVE, QUEUE_FULL

_LOADING_S = 60.0
"""Longest wait for a model that still loads."""
_WAITING_FOR_START = 64
"""Windows that may wait while the model loads."""
_BATCH_SHARE = 2
"""Windows of files may hold one in so many slots."""


class WindowPolicy:
    """Implements `AdmissionPolicy`. A window is known to end only when its speaker does, so there
    is no queue: nobody could say when a slot becomes free."""

    def __init__(self, name: str, orchestrator: Orchestrator) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self.text_executor = TextExecutor()
        self._start = ModelStart(name)
        self._files = asyncio.Semaphore(1)
        self._freed = asyncio.Event()
        """Set whenever a window leaves its slot."""
        self._running = {LIVE: 0, BATCH: 0}
        self._waiting = 0
        self._admitted = {LIVE: 0, BATCH: 0}
        self._refused = {QUEUE_FULL: 0}

    @property
    def report(self) -> AdmissionReport:
        if not self._start.done:
            return AdmissionReport(0, 0, 0, 0)
        slots = self.orchestrator.slots
        return AdmissionReport(
            places=slots,
            running=sum(self._running.values()),
            waiting=0,
            waiting_batch=self._waiting,
            refused=dict(self._refused),
            admitted=dict(self._admitted),
            slots=slots,
            slots_in_use=self.orchestrator.slots_in_use,
            quarantined=self.orchestrator.quarantined,
        )

    async def start(self, warm_up: WarmUp) -> None:
        await self._start.run(self._start_and_warm_up(warm_up))

    async def _start_and_warm_up(self, warm_up: WarmUp) -> None:
        await self.orchestrator.start()
        self._files = asyncio.Semaphore(max(1, self.orchestrator.slots // _BATCH_SHARE))
        await warm_up()

    async def stop(self, deadline_s: float) -> None:
        self._start.give_up()
        self.text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        if self._start.done and not self._has_room:
            self._refused[QUEUE_FULL] += 1
            raise Overloaded(f"all {self.orchestrator.slots} slots are taken", RETRY_S)

    async def wait_until_ready(self, deadline_s: float = math.inf) -> None:
        if not self._start.done:
            left_s = deadline_s - time.monotonic()
            await self._start.wait(min(_LOADING_S, left_s), _WAITING_FOR_START)
        if not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")

    @asynccontextmanager
    async def admit(self, demand: Demand) -> AsyncIterator[None]:
        kind = BATCH if demand.batch else LIVE
        if demand.batch:
            await self._wait_for_place()
        else:
            self.check_room()
        self._running[kind] += 1
        self._admitted[kind] += 1
        try:
            async with self.orchestrator.track_request():
                yield
        finally:
            self._running[kind] -= 1
            self._freed.set()
            if demand.batch:
                self._files.release()

    @property
    def _has_room(self) -> bool:
        return sum(self._running.values()) < self.orchestrator.slots

    async def _wait_for_place(self) -> None:
        """Take one of the places of files once there is also a slot: speakers may have them all."""
        self._waiting += 1
        try:
            await self._files.acquire()
            try:
                while not self._has_room:
                    self._freed.clear()
                    await self._freed.wait()
            except asyncio.CancelledError:
                self._files.release()
                raise
        finally:
            self._waiting -= 1
