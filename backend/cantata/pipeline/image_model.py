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
from cantata.pipeline.admission import Demand, Permit
from cantata.pipeline.drawing_events import DrawingOutputs, Mailbox, PendingImageEvents, drain
from cantata.pipeline.model import PipelineModel
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.step_policy import StepPolicy
from cantata.scheduling.step_plan import JobView
from cantata.utils.logs import make_work_id


class PipelineImageModel(PipelineModel):
    """Implements `contract.image_service.ImageModel` over a plug-in's builder and its pipeline."""

    def __init__(self, builder: ImageBuilder, policy: StepPolicy) -> None:
        super().__init__(policy)
        self._builder = builder
        self._steps = policy
        self._outputs = DrawingOutputs(self.orchestrator, builder)

    @property
    def limits(self) -> ImageLimits:
        return self._builder.limits

    @property
    def note(self) -> str:
        return self._builder.note

    async def warm_up(self) -> None:
        """Draw what measures the steps."""
        for request in self._builder.warm_up:
            request_id = make_work_id()
            planned = self._builder.build(request_id, request)
            async with self.orchestrator.open(planned.request) as opened:
                await self._outputs.image(opened)

    @asynccontextmanager
    async def run(self, request: ImageRequest) -> AsyncIterator[Drawing]:
        """Draw one picture. While the model loads, it waits as long as it would for others."""
        request_id, arrived_s = make_work_id(), time.monotonic()
        await self._policy.wait_until_ready(_compute_deadline(request))
        planned = await self._policy.text_executor.run(
            _count_characters(request), self._builder.build, request_id, request
        )
        timed = replace(planned.request, batch=request.batch, playout_deadline_s=request.deadline_s)
        demand = Demand(
            request_id,
            batch=request.batch,
            is_spoken=False,
            job=_build_view(planned, request, arrived_s),
        )
        async with (
            self._admit([planned.request], demand) as (permit, milestones),
            self.orchestrator.open(timed) as opened,
            self._followed(opened, permit) as events,
        ):
            yield Drawing(
                request_id,
                milestones,
                events,
                width=planned.width,
                height=planned.height,
                steps=planned.steps,
                prompt_tokens=planned.prompt_tokens,
                reference_tokens=planned.reference_tokens,
            )

    @asynccontextmanager
    async def _followed(
        self, opened: OpenRequest, permit: Permit | None
    ) -> AsyncIterator[AsyncGenerator[DrawingEvent, None]]:
        """What arrives of a picture. Its progress counts for admission even if nobody reads it."""
        mailbox: Mailbox[PendingImageEvents] = Mailbox(PendingImageEvents.merge)
        following = asyncio.create_task(
            self._follow(opened, mailbox, permit), name="follow-picture"
        )
        try:
            async with aclosing(drain(mailbox)) as events:
                yield events
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _follow(
        self, opened: OpenRequest, mailbox: Mailbox[PendingImageEvents], permit: Permit | None
    ) -> None:
        began_s = time.monotonic()
        try:
            besides_s = await self._follow_progress(opened, mailbox, permit)
            denoised_s = time.monotonic()
            image = await self._outputs.image(opened)
        except Exception as error:
            # Whatever it is, the one who takes the picture raises it.
            mailbox.fail(error)
            return
        ended_s = time.monotonic()
        self._steps.add_overhead(besides_s - began_s + ended_s - denoised_s)
        mailbox.put(PendingImageEvents.of(image))

    async def _follow_progress(
        self, opened: OpenRequest, mailbox: Mailbox[PendingImageEvents], permit: Permit | None
    ) -> float:
        """To its end; when the first report came, by the monotonic clock."""
        first_s, is_first = time.monotonic(), True
        async with aclosing(self._outputs.before(opened)) as events:
            async for event in events:
                if permit is not None:
                    permit.on_event(event)
                if isinstance(event, Progress):
                    first_s, is_first = (time.monotonic() if is_first else first_s), False
                mailbox.put(PendingImageEvents.of(event))
        return first_s


def _count_characters(request: ImageRequest) -> int:
    """Characters of text."""
    return len(request.prompt) + sum(len(turn.text) for turn in request.earlier)


def _compute_deadline(request: ImageRequest) -> float:
    return math.inf if request.deadline_s is None else request.deadline_s


def _build_view(planned: PlannedImage, request: ImageRequest, arrived_s: float) -> JobView:
    return JobView(
        planned.request.request_id,
        planned.size,
        steps=planned.steps,
        steps_left=planned.steps,
        arrived_s=arrived_s,
        deadline_s=_compute_deadline(request),
        batch=request.batch,
    )
