"""Measured pictures of one model: one, or all of a request, drawn at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from cantata.api.images.answers import PictureUsage, PromptTokens
from cantata.api.images.validation import count_tokens
from cantata.api.measured_run import classify_outcome
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import InvalidRequest, Overloaded, get_first_error
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import Drawing, DrawingEvent, ImageModel
from cantata.metrics import EndReason, Metrics
from cantata.telemetry.request_record import WorkRecord, note_work

logger = logging.getLogger(__name__)


class MeasuredDrawing:
    """An open drawing, and what its events come to so far. It observes `run` beside whoever reads
    it."""

    def __init__(self, model: ImageModel, drawing: Drawing, metrics: Metrics) -> None:
        self.width, self.height = drawing.width, drawing.height
        self.complete = False
        self.end_reason = EndReason.CLIENT_LEFT
        self.request_id = drawing.request_id
        self.steps = 0
        """Done, as far as is known."""
        self.thought_tokens = 0
        self._thought: list[str] = []
        self.run = drawing
        self._model = model
        self._metrics = metrics.pictures
        drawing.observe(self)

    @property
    def thought(self) -> str | None:
        """The words in which the picture was planned, as far as they have come; None: none."""
        return "".join(self._thought) if self.thought_tokens else None

    @property
    def usage(self) -> PictureUsage:
        text, pictures = self.run.prompt_tokens, self.run.reference_tokens
        squares = count_tokens(self.width, self.height, self._model.limits)
        output = squares + self.thought_tokens
        return PictureUsage(
            input_tokens=text + pictures,
            input_tokens_details=PromptTokens(text_tokens=text, image_tokens=pictures),
            output_tokens=output,
            total_tokens=text + pictures + output,
        )

    def on_wait(self) -> None: ...

    def on_event(self, event: DrawingEvent) -> None:
        if isinstance(event, Thought):
            self.thought_tokens += event.tokens
            self._thought.append(event.text)
            return
        steps = self.run.steps if isinstance(event, Image) else event.step
        self._metrics.count_steps(self._model.name, steps - self.steps)
        self.steps = steps
        self.complete = isinstance(event, Image)

    def on_end(self) -> None: ...


@asynccontextmanager
async def open_drawing(
    model: ImageModel, request: ImageRequest, metrics: Metrics
) -> AsyncIterator[MeasuredDrawing]:
    """Open a drawing; leaving awaits its abort and counts how it ended. Raises what
    `ImageModel.run` raises; a rejection is not counted here."""
    asked_at = time.monotonic()
    async with model.run(request) as drawing:
        measured = MeasuredDrawing(model, drawing, metrics)
        metrics.pictures.start(model.name)
        try:
            yield measured
        except BaseException as error:  # counted and raised again
            _record(model, measured, error, asked_at, metrics)
            raise
        _record(model, measured, None, asked_at, metrics)


def _record(
    model: ImageModel,
    drawing: MeasuredDrawing,
    error: BaseException | None,
    asked_at: float,
    metrics: Metrics,
) -> None:
    outcome, reason = classify_outcome(drawing, error)
    ended_at = time.monotonic()
    seconds = ended_at - asked_at
    metrics.pictures.finish(model.name, outcome, reason, seconds)
    figures = {
        "model": model.name,
        "work_id": drawing.request_id,
        "outcome": outcome,
        "reason": reason,
        "steps": drawing.steps,
        "seconds": seconds,
    }
    logger.info("%s after %d steps", outcome, drawing.steps, extra=figures)
    note_work(
        WorkRecord("draw", model.name, drawing.request_id, outcome, reason, asked_at, ended_at)
    )


class Drawings(ABC):
    """Draws the pictures of one request.

    The request is admitted with its first picture. Another one that finds no room waits until one
    of the request's own is done: a server of four slots draws ten pictures, too.
    """

    def __init__(self, model: ImageModel, metrics: Metrics) -> None:
        self._model = model
        self._metrics = metrics
        self._admitted = asyncio.Event()
        self._room = asyncio.Condition()

    async def draw(self, requests: Sequence[ImageRequest]) -> None:
        """Draw all; the first error ends the others. Returns, and raises, once nothing of any is
        left in a stage.

        Raises:
            Overloaded: there is no room for the first.
            InvalidRequest, RequestFailed, StageDied: of one of them.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for number, request in enumerate(requests):
                    group.create_task(self._draw(number, request), name=f"picture:{number}")
        except BaseExceptionGroup as errors:
            raise get_first_error(errors) from None

    @abstractmethod
    async def begin(self) -> None:
        """The request was admitted."""

    @abstractmethod
    async def take(self, number: int, drawing: MeasuredDrawing, event: DrawingEvent) -> None:
        """Take an event of the picture with this index."""

    async def _draw(self, number: int, request: ImageRequest) -> None:
        async with AsyncExitStack() as stack:
            if number == 0:
                drawing = await self._open_first(stack, request)
                self._admitted.set()
                await self.begin()
            else:
                await self._admitted.wait()
                drawing = await self._open_next(stack, request)
            async for event in drawing.run:
                await self.take(number, drawing, event)
        async with self._room:
            self._room.notify()

    async def _open_first(self, stack: AsyncExitStack, request: ImageRequest) -> MeasuredDrawing:
        try:
            return await stack.enter_async_context(
                open_drawing(self._model, request, self._metrics)
            )
        except (InvalidRequest, Overloaded) as refusal:
            self._metrics.count_rejection(self._model.name, refusal.code)
            raise

    async def _open_next(self, stack: AsyncExitStack, request: ImageRequest) -> MeasuredDrawing:
        while True:
            opening = open_drawing(self._model, request, self._metrics)
            try:
                return await stack.enter_async_context(opening)
            except Overloaded as refusal:
                await self._wait_for_room(refusal.retry_after_s)

    async def _wait_for_room(self, seconds: float) -> None:
        """Wait until a picture of this request is done, or for this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._room:
                await self._room.wait()
