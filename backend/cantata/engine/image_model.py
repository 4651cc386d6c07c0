"""One served model that draws: prompts in, pictures out."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from cantata.contract.data.chunks import Progress
from cantata.contract.data.errors import StageDied
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.image_service import Drawing, DrawingEvent
from cantata.contract.model.picture import ImageBuilder, PlannedImage
from cantata.contract.service import AdmissionReport
from cantata.engine.drawing_news import News, taken
from cantata.engine.drawing_outputs import DrawingOutputs
from cantata.engine.mailbox import Mailbox
from cantata.engine.model_start import ModelStart
from cantata.engine.orchestrator import Orchestrator
from cantata.engine.output_stream import OpenRequest
from cantata.engine.text_work import TextWork
from cantata.logs import new_work_id
from cantata.scheduling.admission import BATCH, LIVE
from cantata.scheduling.image_admission import ImageAdmission, ImageLoadLimits
from cantata.scheduling.step_plan import JobView

_NEW_BESIDES = 0.2
"""Weight of the latest picture in the time that pictures take besides their denoising."""


class PipelineImageModel:
    """Implements `contract.image_service.ImageModel` over a plug-in's builder and its pipeline.

    Args:
        name: of the model.
        builder: of requests.
        orchestrator: of its pipeline.
        limits: of the pictures drawn at the same time.
    """

    def __init__(
        self,
        name: str,
        builder: ImageBuilder,
        orchestrator: Orchestrator,
        limits: ImageLoadLimits,
    ) -> None:
        self.name = name
        self.orchestrator = orchestrator
        self._builder = builder
        self._outputs = DrawingOutputs(orchestrator, builder)
        self._text_work = TextWork()
        self._admission = ImageAdmission(limits)
        self._admitted: Counter[str] = Counter({LIVE: 0, BATCH: 0})
        self._jobs: dict[str, JobView] = {}
        """Of the pictures that are being drawn, with the steps that they still have."""
        self._besides_s = 0.0
        self._start = ModelStart(name)

    @property
    def limits(self) -> ImageLimits:
        """What pictures it makes."""
        return self._builder.limits

    @property
    def note(self) -> str:
        """What users should know of it beside its limits."""
        return self._builder.note

    @property
    def admission(self) -> AdmissionReport:
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

    async def start(self) -> None:
        """Start the pipeline, and draw what measures its steps."""
        await self._start.run(self._start_and_warm_up())

    async def _start_and_warm_up(self) -> None:
        await self.orchestrator.start()
        limits = self._admission.limits
        slots = min(limits.slots, self.orchestrator.slots)
        self._admission = ImageAdmission(replace(limits, slots=slots))
        for request in self._builder.warm_up:
            request_id = new_work_id()
            planned = self._builder.build(request_id, request)
            async with self.orchestrator.open(planned.request) as opened:
                await self._outputs.image(opened)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        self._start.give_up()
        self._text_work.close()
        await self.orchestrator.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a request if every slot is taken; takes microseconds.

        Raises:
            Overloaded: they are.
        """
        if self._start.done and self.orchestrator.ready:
            cost, now_s = self.orchestrator.forward_cost, time.monotonic()
            self._admission.check_slots(list(self._jobs.values()), cost, now_s)

    @asynccontextmanager
    async def draw(self, request: ImageRequest) -> AsyncIterator[Drawing]:
        """Draw one picture; leaving the block frees the request everywhere. While the model loads,
        it waits as long as it would for other pictures.

        Raises:
            InvalidRequest: the prompt, a picture or an option cannot be served.
            Overloaded: it would be finished too late.
            Quarantined: the request has ended a stage process twice.
            StageDied: the model is not running.
            StartFailed: nor will it.
        """
        request_id, arrived_s = new_work_id(), time.monotonic()
        if not self._start.done:
            limits, deadline_s = self._admission.limits, request.deadline_s or math.inf
            await self._start.wait(min(limits.max_wait_s, deadline_s - arrived_s), limits.slots)
        if not self.orchestrator.ready:
            raise StageDied(f"model {self.name!r} is not ready")
        build = self._builder.build
        planned = await self._text_work.run(_length(request), build, request_id, request)
        self.orchestrator.check(planned.request)
        self._admit(_view(planned, request, arrived_s))
        try:
            timed = replace(planned.request, batch=request.batch, runs_dry_s=request.deadline_s)
            async with self.orchestrator.open(timed) as opened, self._followed(opened) as events:
                yield Drawing(
                    request_id,
                    planned.width,
                    planned.height,
                    planned.steps,
                    planned.prompt_tokens,
                    planned.reference_tokens,
                    events,
                )
        finally:
            del self._jobs[request_id]

    def _admit(self, job: JobView) -> None:
        """Raises what `ImageAdmission.check` raises."""
        cost, others = self.orchestrator.forward_cost, list(self._jobs.values())
        self._admission.check(job, others, cost, time.monotonic(), besides_s=self._besides_s)
        self._admitted[BATCH if job.batch else LIVE] += 1
        self._jobs[job.request_id] = job

    @asynccontextmanager
    async def _followed(
        self, opened: OpenRequest
    ) -> AsyncIterator[AsyncGenerator[DrawingEvent, None]]:
        """What arrives of a picture. Its progress counts for admission even if nobody reads it."""
        mailbox: Mailbox[News] = Mailbox(News.then)
        following = asyncio.create_task(self._follow(opened, mailbox), name="follow-picture")
        try:
            async with aclosing(taken(mailbox)) as events:
                yield events
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _follow(self, opened: OpenRequest, mailbox: Mailbox[News]) -> None:
        began_s = time.monotonic()
        try:
            besides_s = await self._follow_progress(opened, mailbox)
            denoised_s = time.monotonic()
            image = await self._outputs.image(opened)
        except Exception as error:
            # Whatever it is, the one who takes the picture raises it.
            mailbox.fail(error)
            return
        ended_s = time.monotonic()
        besides_s = besides_s - began_s + ended_s - denoised_s
        self._besides_s += _NEW_BESIDES * (besides_s - self._besides_s)
        mailbox.put(News.of(image))

    async def _follow_progress(self, opened: OpenRequest, mailbox: Mailbox[News]) -> float:
        """To its end; when the first report came, by the monotonic clock."""
        first_s, is_first = time.monotonic(), True
        async with aclosing(self._outputs.before(opened)) as events:
            async for event in events:
                if isinstance(event, Progress):
                    self._advance(opened.request_id, event)
                    first_s, is_first = (time.monotonic() if is_first else first_s), False
                mailbox.put(News.of(event))
        return first_s

    def _advance(self, request_id: str, progress: Progress) -> None:
        job = self._jobs.get(request_id)
        if job is not None:
            self._jobs[request_id] = replace(job, steps_left=progress.steps - progress.step)


def _length(request: ImageRequest) -> int:
    """Characters of text."""
    return len(request.prompt) + sum(len(turn.text) for turn in request.earlier)


def _view(planned: PlannedImage, request: ImageRequest, arrived_s: float) -> JobView:
    deadline_s = math.inf if request.deadline_s is None else request.deadline_s
    return JobView(
        planned.request.request_id,
        planned.size,
        steps=planned.steps,
        steps_left=planned.steps,
        arrived_s=arrived_s,
        deadline_s=deadline_s,
        batch=request.batch,
    )
