"""Pictures that are sent when all are done."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.images.answers import DrawnPicture, ImagesAnswer, PictureUsage
from cantata.api.images.drawing import Drawings
from cantata.api.images.measured_drawing import MeasuredDrawing
from cantata.api.images.order import ImageOrder
from cantata.api.images.response import ImagesResponse, unix_time
from cantata.contract.data.chunks import Image
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent


class WholeImages(ImagesResponse):
    """The whole answer as one JSON object."""

    def __init__(self, context: ApiContext, order: ImageOrder) -> None:
        super().__init__(context, order, "application/json")

    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw all, and write them at once."""
        created = unix_time()
        kept = _Kept(self.context, self.order)
        await kept.draw(requests)
        # Many large files take their time to be written as text.
        data = await asyncio.to_thread(_written, created, kept, requests)
        await body.write_in_parts(data)
        await body.end()


class _Kept(Drawings):
    """Files, until all are there."""

    def __init__(self, context: ApiContext, order: ImageOrder) -> None:
        super().__init__(order.model, context.metrics)
        self.order = order
        self.files: dict[int, bytes] = {}
        self.thoughts: dict[int, str | None] = {}
        self.usages: list[PictureUsage] = []
        self.size = ""
        self._media = context.media

    async def begin(self) -> None:
        """Nothing leaves before the end."""

    async def take(self, number: int, drawing: MeasuredDrawing, event: DrawingEvent) -> None:
        if isinstance(event, Image):
            self.files[number] = await self._media.write(event.pixels, self.order.output)
            self.thoughts[number] = drawing.thought
            self.usages.append(drawing.usage)
            self.size = f"{drawing.width}x{drawing.height}"


def _written(created: int, kept: _Kept, requests: Sequence[ImageRequest]) -> bytes:
    pictures = [
        DrawnPicture(
            b64_json=base64.b64encode(kept.files[number]).decode("ascii"),
            seed=request.seed,
            reasoning_content=kept.thoughts[number],
        )
        for number, request in enumerate(requests)
    ]
    answer = ImagesAnswer(
        created=created,
        data=pictures,
        size=kept.size,
        quality=kept.order.quality,
        output_format=kept.order.output.kind,
        usage=_all(kept.usages),
    )
    return answer.model_dump_json().encode()


def _all(usages: Sequence[PictureUsage]) -> PictureUsage:
    """The usage of several pictures of one prompt."""
    prompt, result = usages[0], sum(usage.output_tokens for usage in usages)
    return PictureUsage(
        input_tokens=prompt.input_tokens,
        input_tokens_details=prompt.input_tokens_details,
        output_tokens=result,
        total_tokens=prompt.input_tokens + result,
    )
