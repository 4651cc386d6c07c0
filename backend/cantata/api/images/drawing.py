"""All pictures of one request, drawn at the same time."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AsyncExitStack

from cantata.api.images.measured_drawing import MeasuredDrawing, open_drawing
from cantata.contract.data.errors import InvalidRequest, Overloaded, first_error
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent, ImageModel
from cantata.metrics import Metrics


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
            raise first_error(errors) from None

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
            self._metrics.rejected(self._model.name, refusal.code)
            raise

    async def _open_next(self, stack: AsyncExitStack, request: ImageRequest) -> MeasuredDrawing:
        while True:
            opening = open_drawing(self._model, request, self._metrics)
            try:
                return await stack.enter_async_context(opening)
            except Overloaded as refusal:
                await self._until_room(refusal.retry_after_s)

    async def _until_room(self, seconds: float) -> None:
        """Wait until a picture of this request is done, or for this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._room:
                await self._room.wait()
