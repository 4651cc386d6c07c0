"""Admission by steps: pictures, and answers that are written among them, by a forecast."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from cantata.contract.chat_service import AnswerDelta, AnswerEvent
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Progress
from cantata.contract.data.errors import StageDied
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.image_service import DrawingEvent
from cantata.contract.model.conversation import AnswerSteps
from cantata.contract.service import AdmissionReport
from cantata.pipeline.admission import Demand, Permit, WarmUp
from cantata.pipeline.model import ModelStart, warm_up_together
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.text_executor import TextExecutor
from cantata.scheduling.admission import BATCH, LIVE
from cantata.scheduling.step_admission import StepAdmission, StepLimits
from cantata.scheduling.step_plan import JobView, OutputLengthEstimator

_NEW_BESIDES = 0.2
"""Weight of the latest picture in the time that pictures take besides their denoising."""


class StepPolicy:
    """Implements `AdmissionPolicy` over a stage that advances jobs by steps: at once, or not at
    all. All models of the pipeline share it. `limits`: of the jobs at the same time."""

    def __init__(self, name: str, orchestrator: Orchestrator, limits: StepLimits) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self.text_executor = TextExecutor()
        self._admission = StepAdmission(limits)
        self._admitted: Counter[str] = Counter({LIVE: 0, BATCH: 0})
        self._jobs: dict[str, JobView] = {}
        """Those that were admitted and are not over, with the steps that they still have."""
        self._output_length = OutputLengthEstimator()
        self._besides_s = 0.0
        self._start = ModelStart(name)

    @property
    def report(self) -> AdmissionReport:
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

    async def start(self, warm_up: WarmUp) -> None:
        await self._start.run(self._start_and_warm_up(warm_up))

    async def _start_and_warm_up(self, warm_up: WarmUp) -> None:
        await self.orchestrator.start()
        limits = self._admission.limits
        slots = min(limits.slots, self.orchestrator.slots)
        self._admission = StepAdmission(replace(limits, slots=slots))
        deadline_s = time.monotonic() + self.orchestrator.start_timeout_s
        await warm_up_together(warm_up, 1, deadline_s, self.name)

    async def stop(self, deadline_s: float) -> None:
        self._start.give_up()
        self.text_executor.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        if self._start.done and self.orchestrator.ready:
            cost, now_s = self.orchestrator.forward_cost, time.monotonic()
            self._admission.check_slots(list(self._jobs.values()), cost, now_s)

    async def wait_until_ready(self, deadline_s: float = math.inf) -> None:
        """While the model loads, a request waits as long as it would for others."""
        if not self._start.done:
            limits, left_s = self._admission.limits, deadline_s - time.monotonic()
            await self._start.wait(min(limits.max_wait_s, left_s), limits.slots)
        if not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")

    @asynccontextmanager
    async def admit(self, demand: Demand) -> AsyncIterator[Permit]:
        steps = demand.job
        assert steps is not None, "a model that draws tells what a request takes of its steps"
        if isinstance(steps, JobView):
            async with self._count_job(steps):
                yield _PicturePermit(self, demand.request_id)
            return
        answer = _AnswerPermit(self, demand, steps, self._output_length)
        async with self._count_job(answer.view(time.monotonic())):
            yield answer
            self._output_length.record_length(answer.tokens)

    def advanced(self, request_id: str, steps_left: int) -> None:
        """A job has so many steps left."""
        job = self._jobs.get(request_id)
        if job is not None:
            self._jobs[request_id] = replace(job, steps_left=steps_left)

    def add_overhead(self, seconds: float) -> None:
        """A picture took so long before and after its denoising."""
        self._besides_s += _NEW_BESIDES * (seconds - self._besides_s)

    @asynccontextmanager
    async def _count_job(self, job: JobView) -> AsyncIterator[None]:
        cost, others = self.orchestrator.forward_cost, list(self._jobs.values())
        self._admission.check(job, others, cost, time.monotonic(), besides_s=self._besides_s)
        self._admitted[BATCH if job.batch else LIVE] += 1
        self._jobs[job.request_id] = job
        try:
            async with self.orchestrator.track_request():
                yield
        finally:
            del self._jobs[job.request_id]


class _PicturePermit:
    def __init__(self, policy: StepPolicy, request_id: str) -> None:
        self._policy, self._request_id = policy, request_id

    def on_wait(self) -> None: ...

    def on_event(self, event: DrawingEvent) -> None:
        if isinstance(event, Progress):
            self._policy.advanced(self._request_id, event.steps - event.step)

    def on_end(self) -> None: ...


class _AnswerPermit:
    """Counts the steps of an answer: each token was one."""

    def __init__(
        self,
        policy: StepPolicy,
        demand: Demand,
        steps: AnswerSteps,
        output_length: OutputLengthEstimator,
    ) -> None:
        self._policy, self._request_id, self._steps = policy, demand.request_id, steps
        self._batch = demand.batch
        self._output_length = output_length
        self.tokens = 0
        """Tokens that have come."""

    def view(self, now_s: float) -> JobView:
        """The job before its first step. All its steps count as one size: the mean."""
        writing = self._output_length.left(self._steps.writing)
        steps = self._steps.reading + writing
        read, write = self._steps.read, self._steps.write
        size = ForwardSize(
            math.ceil((read.tokens + writing * write.tokens) / steps),
            math.ceil((read.pairs + writing * write.pairs) / steps),
        )
        return JobView(
            self._request_id,
            size,
            steps=steps,
            steps_left=steps,
            arrived_s=now_s,
            batch=self._batch,
            writes=True,
        )

    def on_wait(self) -> None: ...

    def on_event(self, event: AnswerEvent) -> None:
        if isinstance(event, AnswerDelta | Thought) and event.tokens:
            self.tokens += event.tokens
            if (tokens_left := self._steps.writing - self.tokens) > 0:
                self._policy.advanced(self._request_id, self._output_length.left(tokens_left))

    def on_end(self) -> None: ...
