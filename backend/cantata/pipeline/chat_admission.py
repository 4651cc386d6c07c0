"""Admission for chat: by slots, or by diffusion steps when the model also draws."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.conversation import PlannedAnswer
from cantata.contract.service import AdmissionReport
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.served_pipeline import ServedPipeline
from cantata.pipeline.stepped_pipeline import SteppedPipeline
from cantata.pipeline.text_executor import TextExecutor
from cantata.scheduling.admission import AdmissionPermit
from cantata.scheduling.output_length import OutputLengthEstimator
from cantata.scheduling.step_plan import JobView


class ChatPermit(Protocol):
    """Held by an admitted answer."""

    def mark_first_output(self) -> None:
        """Called on the first token, or the first sound if the answer is spoken."""
        ...

    def add_tokens(self, tokens: int) -> None:
        """Called with the number of new tokens."""
        ...


class ChatAdmission(Protocol):
    """Admits answers to one pipeline."""

    @property
    def name(self) -> str:
        """Of the model."""
        ...

    @property
    def orchestrator(self) -> Orchestrator:
        """Of the pipeline."""
        ...

    @property
    def text_executor(self) -> TextExecutor:
        """In front of it."""
        ...

    @property
    def report(self) -> AdmissionReport:
        """Running and waiting requests; no places before `start` has finished."""
        ...

    async def start(self, warm_up: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start the pipeline, warm it up and measure what it can serve."""
        ...

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        ...

    def check_room(self) -> None:
        """Reject a request that there is no room for; takes microseconds.

        Raises:
            Overloaded: there is none.
        """
        ...

    async def until_ready(self) -> None:
        """Return once the pipeline runs.

        Raises:
            Overloaded: enough requests wait for that already.
            StageDied: it does not.
        """
        ...

    def admit(self, planned: PlannedAnswer) -> AbstractAsyncContextManager[ChatPermit]:
        """Hold a place for an answer.

        Raises:
            Overloaded: there is none, or it came too late.
            StageDied: a stage is down.
        """
        ...


class ChatSlotAdmission:
    """Implements `ChatAdmission` over slots.

    Args:
        served: of the model.
    """

    def __init__(self, served: ServedPipeline) -> None:
        self._served = served
        self.name, self.orchestrator = served.name, served.orchestrator
        self.text_executor = served.text_executor
        self.start, self.stop, self.check_room = served.start, served.stop, served.check_room

    @property
    def report(self) -> AdmissionReport:
        return self._served.report

    async def until_ready(self) -> None:
        """Raises StageDied if the model is not running: nobody waits while it loads."""
        self._served.check_ready()

    @asynccontextmanager
    async def admit(self, planned: PlannedAnswer) -> AsyncIterator[ChatPermit]:
        """In the queue, if need be."""
        async with self._served.admit() as permit:
            yield _SlotPermit(permit)


class ChatStepAdmission:
    """Implements `ChatAdmission` over a stage whose jobs are answers and pictures.

    Args:
        pipeline: of the model.
    """

    def __init__(self, pipeline: SteppedPipeline) -> None:
        self._pipeline = pipeline
        self._output_length = OutputLengthEstimator()
        self.name, self.orchestrator = pipeline.name, pipeline.orchestrator
        self.text_executor = pipeline.text_executor
        self.start, self.stop, self.check_room = pipeline.start, pipeline.stop, pipeline.check_room

    @property
    def report(self) -> AdmissionReport:
        """As `ChatAdmission`: with the pictures."""
        return self._pipeline.report

    async def until_ready(self) -> None:
        await self._pipeline.until_ready()

    @asynccontextmanager
    async def admit(self, planned: PlannedAnswer) -> AsyncIterator[ChatPermit]:
        """At once, or not at all: as a picture."""
        job = _StepPermit(planned, self._pipeline, self._output_length)
        with self._pipeline.admitted(job.view(time.monotonic())):
            yield job
            self._output_length.ended(job.tokens)


class _SlotPermit:
    """Implements `ChatPermit` over a slot."""

    def __init__(self, permit: AdmissionPermit) -> None:
        self.mark_first_output = permit.mark_first_sound

    def add_tokens(self, tokens: int) -> None:
        """A slot is held to the end, however long the text is."""


class _StepPermit:
    """Implements `ChatPermit` over a job."""

    def __init__(
        self,
        planned: PlannedAnswer,
        pipeline: SteppedPipeline,
        output_length: OutputLengthEstimator,
    ) -> None:
        assert planned.steps is not None, "a model that draws too tells an answer's steps"
        self._steps, self._pipeline, self._output_length = planned.steps, pipeline, output_length
        self._request_id = planned.request.request_id
        self.tokens = 0
        """That have come."""

    def view(self, now_s: float) -> JobView:
        """Before the first step. A view's steps are all of one size: the mean."""
        writing = self._output_length.left(self._steps.writing)
        steps = self._steps.reading + writing
        read, write = self._steps.read, self._steps.write
        size = ForwardSize(
            math.ceil((read.tokens + writing * write.tokens) / steps),
            math.ceil((read.pairs + writing * write.pairs) / steps),
        )
        return JobView(
            self._request_id, size, steps=steps, steps_left=steps, arrived_s=now_s, writes=True
        )

    def mark_first_output(self) -> None:
        """Its tokens say more."""

    def add_tokens(self, tokens: int) -> None:
        """Each was a step."""
        self.tokens += tokens
        if (most := self._steps.writing - self.tokens) > 0:
            self._pipeline.advanced(self._request_id, self._output_length.left(most))
