"""Where a model's answers have room: in places, as speech has them, or among the jobs of a stage
that draws too."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.conversation import PlannedAnswer
from cantata.contract.service import AdmissionReport
from cantata.engine.orchestrator import Orchestrator
from cantata.engine.served_pipeline import ServedPipeline
from cantata.engine.stepped_pipeline import SteppedPipeline
from cantata.engine.text_work import TextWork
from cantata.scheduling.admission import Place
from cantata.scheduling.step_plan import JobView
from cantata.scheduling.usual_length import UsualLength


class AnswerPlace(Protocol):
    """What an admitted answer holds."""

    def begun(self) -> None:
        """The first of what takes long has come: its text, or its sound if it is spoken."""
        ...

    def wrote(self, tokens: int) -> None:
        """So many more tokens have come."""
        ...


class AnswerRoom(Protocol):
    """A pipeline, as far as a model that answers is concerned."""

    @property
    def name(self) -> str:
        """Of the model."""
        ...

    @property
    def orchestrator(self) -> Orchestrator:
        """Of the pipeline."""
        ...

    @property
    def text_work(self) -> TextWork:
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

    def admit(self, planned: PlannedAnswer) -> AbstractAsyncContextManager[AnswerPlace]:
        """Hold a place for an answer.

        Raises:
            Overloaded: there is none, or it came too late.
            StageDied: a stage is down.
        """
        ...


class PlacesForAnswers:
    """Implements `AnswerRoom` over places.

    Args:
        served: of the model.
    """

    def __init__(self, served: ServedPipeline) -> None:
        self._served = served
        self.name, self.orchestrator = served.name, served.orchestrator
        self.text_work = served.text_work
        self.start, self.stop, self.check_room = served.start, served.stop, served.check_room

    @property
    def report(self) -> AdmissionReport:
        """As `AnswerRoom`."""
        return self._served.report

    async def until_ready(self) -> None:
        """Raises StageDied if the model is not running: nobody waits while it loads."""
        self._served.check_ready()

    @asynccontextmanager
    async def admit(self, planned: PlannedAnswer) -> AsyncIterator[AnswerPlace]:
        """In the queue, if need be."""
        async with self._served.admit() as place:
            yield _InPlace(place)


class StepsForAnswers:
    """Implements `AnswerRoom` over a stage whose jobs are answers and pictures.

    Args:
        pipeline: of the model.
    """

    def __init__(self, pipeline: SteppedPipeline) -> None:
        self._pipeline = pipeline
        self._usual = UsualLength()
        self.name, self.orchestrator = pipeline.name, pipeline.orchestrator
        self.text_work = pipeline.text_work
        self.start, self.stop, self.check_room = pipeline.start, pipeline.stop, pipeline.check_room

    @property
    def report(self) -> AdmissionReport:
        """As `AnswerRoom`: with the pictures."""
        return self._pipeline.report

    async def until_ready(self) -> None:
        """As `SteppedPipeline.until_ready`."""
        await self._pipeline.until_ready()

    @asynccontextmanager
    async def admit(self, planned: PlannedAnswer) -> AsyncIterator[AnswerPlace]:
        """At once, or not at all: as a picture."""
        job = _AmongSteps(planned, self._pipeline, self._usual)
        with self._pipeline.admitted(job.view(time.monotonic())):
            yield job
            self._usual.ended(job.tokens)


class _InPlace:
    """Implements `AnswerPlace` over a place."""

    def __init__(self, place: Place) -> None:
        self.begun = place.has_sound

    def wrote(self, tokens: int) -> None:
        """A place is held to the end, however long the text is."""


class _AmongSteps:
    """Implements `AnswerPlace` over a job."""

    def __init__(
        self, planned: PlannedAnswer, pipeline: SteppedPipeline, usual: UsualLength
    ) -> None:
        assert planned.steps is not None, "a model that draws too tells an answer's steps"
        self._steps, self._pipeline, self._usual = planned.steps, pipeline, usual
        self._request_id = planned.request.request_id
        self.tokens = 0
        """That have come."""

    def view(self, now_s: float) -> JobView:
        """Before the first step. A view's steps are all of one size: the mean."""
        writing = self._usual.left(self._steps.writing)
        steps = self._steps.reading + writing
        read, write = self._steps.read, self._steps.write
        size = ForwardSize(
            math.ceil((read.tokens + writing * write.tokens) / steps),
            math.ceil((read.pairs + writing * write.pairs) / steps),
        )
        return JobView(
            self._request_id, size, steps=steps, steps_left=steps, arrived_s=now_s, writes=True
        )

    def begun(self) -> None:
        """Its tokens say more."""

    def wrote(self, tokens: int) -> None:
        """Each was a step."""
        self.tokens += tokens
        if (most := self._steps.writing - self.tokens) > 0:
            self._pipeline.advanced(self._request_id, self._usual.left(most))
