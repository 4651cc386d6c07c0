"""A pipeline in stage processes, one of which advances jobs by steps: its start, and admission to
it by forecast. What draws and what answers over it share both."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace

from cantata.contract.data.errors import StageDied
from cantata.contract.service import AdmissionReport
from cantata.pipeline.model_start import ModelStart
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.pipeline.warm_up import warm_up_together
from cantata.scheduling.admission import BATCH, LIVE
from cantata.scheduling.step_admission import StepAdmission, StepLimits
from cantata.scheduling.step_plan import JobView

_NEW_BESIDES = 0.2
"""Weight of the latest picture in the time that pictures take besides their denoising."""


class SteppedPipeline:
    """Of one model.

    Args:
        name: of the model.
        orchestrator: of its pipeline.
        limits: of the jobs at the same time.
    """

    def __init__(self, name: str, orchestrator: Orchestrator, limits: StepLimits) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self.text_executor = TextExecutor()
        self._admission = StepAdmission(limits)
        self._admitted: Counter[str] = Counter({LIVE: 0, BATCH: 0})
        self._jobs: dict[str, JobView] = {}
        """Those that were admitted and are not over, with the steps that they still have."""
        self._besides_s = 0.0
        self._start = ModelStart(name)

    @property
    def report(self) -> AdmissionReport:
        """Running requests; no places before `start` has finished."""
        if not self._start.done:
            return AdmissionReport(0, 0, 0, 0)
        slots = self.orchestrator.slots
        return AdmissionReport(
            places=slots,
            running=len(self._jobs),
            waiting=0,
            waiting_batch=0,
            refused=dict(self._admission.refused),
            admitted=dict(self._admitted),
            slots=slots,
            slots_in_use=self.orchestrator.slots_in_use,
            quarantined=self.orchestrator.quarantined,
        )

    async def start(self, warm_up: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start the stages, and have `warm_up` measure their steps."""
        await self._start.run(self._start_and_warm_up(warm_up))

    async def _start_and_warm_up(self, warm_up: Callable[[], Coroutine[None, None, None]]) -> None:
        await self.orchestrator.start()
        limits = self._admission.limits
        slots = min(limits.slots, self.orchestrator.slots)
        self._admission = StepAdmission(replace(limits, slots=slots))
        deadline_s = time.monotonic() + self.orchestrator.start_timeout_s
        await warm_up_together(warm_up, 1, deadline_s, self.name)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        self._start.give_up()
        self.text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a request if every slot is taken; takes microseconds.

        Raises:
            Overloaded: they are.
        """
        if self._start.done and self.orchestrator.ready:
            cost, now_s = self.orchestrator.forward_cost, time.monotonic()
            self._admission.check_slots(list(self._jobs.values()), cost, now_s)

    async def until_ready(self, deadline_s: float = math.inf) -> None:
        """While the model loads, a request waits as long as it would for others.

        Args:
            deadline_s: when its caller stops waiting, by the monotonic clock.

        Raises:
            Overloaded: enough wait already.
            StageDied: the model is not running.
            StartFailed: nor will it.
        """
        if not self._start.done:
            limits, left_s = self._admission.limits, deadline_s - time.monotonic()
            await self._start.wait(min(limits.max_wait_s, left_s), limits.slots)
        if not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")

    @contextmanager
    def admitted(self, job: JobView) -> Iterator[None]:
        """Count a job for the time of the block.

        Raises:
            Overloaded: it would be done too late.
            InvalidRequest: it takes longer than its caller waits, even alone.
        """
        cost, others = self.orchestrator.forward_cost, list(self._jobs.values())
        self._admission.check(job, others, cost, time.monotonic(), besides_s=self._besides_s)
        self._admitted[BATCH if job.batch else LIVE] += 1
        self._jobs[job.request_id] = job
        try:
            with self.orchestrator.track_request():
                yield
        finally:
            del self._jobs[job.request_id]

    def advanced(self, request_id: str, steps_left: int) -> None:
        """A job has so many steps left."""
        job = self._jobs.get(request_id)
        if job is not None:
            self._jobs[request_id] = replace(job, steps_left=steps_left)

    def took_besides(self, seconds: float) -> None:
        """A picture took so long before and after its denoising."""
        self._besides_s += _NEW_BESIDES * (seconds - self._besides_s)
