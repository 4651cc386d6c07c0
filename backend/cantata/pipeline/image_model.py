"""One served model that draws: prompts in, pictures out."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from cantata.contract.data.chunks import Progress
from cantata.contract.data.pictures import ImageLimits, ImageRequest
from cantata.contract.image_service import Drawing, DrawingEvent
from cantata.contract.model.picture import ImageBuilder, PlannedImage
from cantata.contract.service import AdmissionReport
from cantata.pipeline.drawing_outputs import DrawingOutputs
from cantata.pipeline.mailbox import Mailbox
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.pending_image_events import PendingImageEvents, drain
from cantata.pipeline.stepped_pipeline import SteppedPipeline
from cantata.scheduling.step_plan import JobView
from cantata.utils.logs import new_work_id


class PipelineImageModel:
    """Implements `contract.image_service.ImageModel` over a plug-in's builder and its pipeline.

    Args:
        builder: of requests.
        pipeline: of the model.
    """

    def __init__(self, builder: ImageBuilder, pipeline: SteppedPipeline) -> None:
        self.name = pipeline.name
        self.orchestrator = pipeline.orchestrator
        self._builder = builder
        self._pipeline = pipeline
        self._outputs = DrawingOutputs(self.orchestrator, builder)

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
        return self._pipeline.report

    async def start(self) -> None:
        """Start the pipeline, and draw what measures its steps."""
        await self._pipeline.start(self.warm_up)

    async def warm_up(self) -> None:
        """Draw what measures the steps of a pipeline that has just started."""
        for request in self._builder.warm_up:
            request_id = new_work_id()
            planned = self._builder.build(request_id, request)
            async with self.orchestrator.open(planned.request) as opened:
                await self._outputs.image(opened)

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        await self._pipeline.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a request if every slot is taken; takes microseconds.

        Raises:
            Overloaded: they are.
        """
        self._pipeline.check_room()

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
        await self._pipeline.until_ready(_deadline(request))
        build, text_executor = self._builder.build, self._pipeline.text_executor
        planned = await text_executor.run(_length(request), build, request_id, request)
        self.orchestrator.check(planned.request)
        timed = replace(planned.request, batch=request.batch, playout_deadline_s=request.deadline_s)
        with self._pipeline.admitted(_view(planned, request, arrived_s)):
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

    @asynccontextmanager
    async def _followed(
        self, opened: OpenRequest
    ) -> AsyncIterator[AsyncGenerator[DrawingEvent, None]]:
        """What arrives of a picture. Its progress counts for admission even if nobody reads it."""
        mailbox: Mailbox[PendingImageEvents] = Mailbox(PendingImageEvents.merge)
        following = asyncio.create_task(self._follow(opened, mailbox), name="follow-picture")
        try:
            async with aclosing(drain(mailbox)) as events:
                yield events
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _follow(self, opened: OpenRequest, mailbox: Mailbox[PendingImageEvents]) -> None:
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
        self._pipeline.took_besides(besides_s - began_s + ended_s - denoised_s)
        mailbox.put(PendingImageEvents.of(image))

    async def _follow_progress(
        self, opened: OpenRequest, mailbox: Mailbox[PendingImageEvents]
    ) -> float:
        """To its end; when the first report came, by the monotonic clock."""
        first_s, is_first = time.monotonic(), True
        async with aclosing(self._outputs.before(opened)) as events:
            async for event in events:
                if isinstance(event, Progress):
                    self._pipeline.advanced(opened.request_id, event.steps - event.step)
                    first_s, is_first = (time.monotonic() if is_first else first_s), False
                mailbox.put(PendingImageEvents.of(event))
        return first_s


def _length(request: ImageRequest) -> int:
    """Characters of text."""
    return len(request.prompt) + sum(len(turn.text) for turn in request.earlier)


def _deadline(request: ImageRequest) -> float:
    return math.inf if request.deadline_s is None else request.deadline_s


def _view(planned: PlannedImage, request: ImageRequest, arrived_s: float) -> JobView:
    return JobView(
        planned.request.request_id,
        planned.size,
        steps=planned.steps,
        steps_left=planned.steps,
        arrived_s=arrived_s,
        deadline_s=_deadline(request),
        batch=request.batch,
    )
