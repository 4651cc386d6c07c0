"""Pictures that are sent while they are drawn, as server-sent events."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body
from cantata.api.images.answers import (
    COMPLETED,
    PARTIAL,
    PROGRESS,
    THOUGHT,
    CompletedImage,
    DrawingProgress,
    PartialImage,
    ThoughtDelta,
)
from cantata.api.images.drawing import Drawings
from cantata.api.images.measured_drawing import MeasuredDrawing
from cantata.api.images.order import ImageOrder
from cantata.api.images.response import ImagesResponse, unix_time
from cantata.api.schemas import ErrorBody
from cantata.api.speech.framing import SSE_MEDIA_TYPE, sse_event
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import CantataError
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent
from cantata.media.images import Pixels

logger = logging.getLogger(__name__)


class StreamedImages(ImagesResponse):
    """Events of all pictures, as they come; the head is sent once the request is admitted."""

    def __init__(self, context: ApiContext, order: ImageOrder) -> None:
        super().__init__(context, order, SSE_MEDIA_TYPE)

    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw all, and write of each what the client asked for."""
        try:
            await _Sent(self.context, self.order, requests, body).draw(requests)
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("pictures failed after admission: %s", error)
            await body.end(sse_event(ErrorBody(error=describe(error).detail), "error"))
        else:
            await body.end()


class _Sent(Drawings):
    """Events, as they come."""

    def __init__(
        self, context: ApiContext, order: ImageOrder, requests: Sequence[ImageRequest], body: Body
    ) -> None:
        super().__init__(order.model, context.metrics)
        self._media = context.media
        self._order = order
        self._requests = requests
        self._body = body
        self._partials = Counter[int]()
        self._writing = asyncio.Lock()

    async def begin(self) -> None:
        await self._body.write(b"")

    async def take(self, number: int, drawing: MeasuredDrawing, event: DrawingEvent) -> None:
        match event:
            case Image():
                await self._complete(number, drawing, event.pixels)
            case Thought():
                await self._think(number, event.text)
            case Progress():
                await self._advance(number, drawing, event)

    async def _advance(self, number: int, drawing: MeasuredDrawing, event: Progress) -> None:
        if self._order.options.stream_progress:
            await self._send_progress(number, event)
        if event.pixels.size and self._partials[number] < self._order.options.partial_images:
            await self._preview(number, drawing, event.pixels)

    async def _think(self, number: int, text: str) -> None:
        if text:
            event = ThoughtDelta(
                type=THOUGHT[self._order.kind],
                image_index=number,
                created_at=unix_time(),
                delta=text,
            )
            await self._write(sse_event(event, event.type))

    async def _send_progress(self, number: int, progress: Progress) -> None:
        event = DrawingProgress(
            type=PROGRESS[self._order.kind],
            image_index=number,
            created_at=unix_time(),
            step=progress.step,
            steps=progress.steps,
        )
        await self._write(sse_event(event, event.type))

    async def _preview(self, number: int, drawing: MeasuredDrawing, pixels: Pixels) -> None:
        size = drawing.width, drawing.height
        file = await self._media.write(pixels, self._order.output, size)
        index = self._partials[number]
        self._partials[number] += 1
        await self._write_picture(
            PartialImage(
                type=PARTIAL[self._order.kind],
                image_index=number,
                partial_image_index=index,
                created_at=unix_time(),
                b64_json=base64.b64encode(file).decode("ascii"),
                **self._fields(drawing),
            )
        )

    async def _complete(self, number: int, drawing: MeasuredDrawing, pixels: Pixels) -> None:
        file = await self._media.write(pixels, self._order.output)
        await self._write_picture(
            CompletedImage(
                type=COMPLETED[self._order.kind],
                image_index=number,
                created_at=unix_time(),
                b64_json=base64.b64encode(file).decode("ascii"),
                seed=self._requests[number].seed,
                reasoning_content=drawing.thought,
                usage=drawing.usage,
                **self._fields(drawing),
            )
        )

    def _fields(self, drawing: MeasuredDrawing) -> dict[str, Any]:
        """The values of `PictureFields`."""
        return {
            "size": f"{drawing.width}x{drawing.height}",
            "quality": self._order.quality,
            "output_format": self._order.output.kind,
        }

    async def _write_picture(self, event: PartialImage | CompletedImage) -> None:
        # Megabytes of text.
        await self._write(await asyncio.to_thread(sse_event, event, event.type))

    async def _write(self, data: bytes) -> None:
        """Send one event at a time: a long one is sent in parts."""
        async with self._writing:
            await self._body.write_in_parts(data)
