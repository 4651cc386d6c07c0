"""Answers that are pictures, whole and while they are made."""

from __future__ import annotations

import asyncio

from cantata.api.chat.answers import (
    AnswerImage,
    AnswerMessage,
    ChatCompletion,
    Choice,
    Delta,
)
from cantata.api.chat.chunks import Chunks
from cantata.api.chat.completion import as_events
from cantata.api.chat.picture_order import PictureOrder
from cantata.api.chat.picture_response import PictureResponse, build_usage
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.images.measured_drawing import MeasuredDrawing
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress


class WholePicture(PictureResponse):
    """The picture's whole answer as one JSON object."""

    def __init__(self, context: ApiContext, order: PictureOrder) -> None:
        super().__init__(context, order, "application/json")

    async def answer(self, body: Body) -> None:
        """Have the picture drawn, and write it."""
        async with self.opened(body) as drawing:
            images = [
                await self.image(event.pixels)
                async for event in drawing.run
                if isinstance(event, Image)
            ]
        # Megabytes of text.
        await body.write_in_parts(await asyncio.to_thread(self._written, drawing, images))
        await body.end()

    def _written(self, drawing: MeasuredDrawing, images: list[AnswerImage]) -> bytes:
        message = AnswerMessage(content="", images=images, reasoning_content=drawing.thought)
        completion = ChatCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.order.model.name,
            choices=[Choice(message=message, finish_reason="stop")],
            usage=build_usage(drawing),
        )
        return completion.model_dump_json().encode()


class StreamedPicture(PictureResponse):
    """Server-sent events: words of a plan, the picture. Comments in between tell the steps, so that
    nobody takes the connection for dead."""

    def __init__(self, context: ApiContext, order: PictureOrder) -> None:
        super().__init__(context, order, SSE_MEDIA_TYPE)
        self._chunks = Chunks(self.completion_id, self.created, order.model.name)

    async def answer(self, body: Body) -> None:
        """Have the picture drawn, and write what comes of it."""
        await as_events(body, self._write(body))

    async def _write(self, body: Body) -> None:
        async with self.opened(body) as drawing:
            await body.write(self._chunks.delta(Delta(role="assistant", content="")))
            async for event in drawing.run:
                match event:
                    case Thought(text) if text:
                        await body.write(self._chunks.delta(Delta(reasoning_content=text)))
                    case Progress():
                        await body.write(f": step {event.step} of {event.steps}\n\n".encode())
                    case Image():
                        delta = Delta(images=[await self.image(event.pixels)])
                        data = await asyncio.to_thread(self._chunks.delta, delta)
                        await body.write_in_parts(data)
        wants_usage = self.order.body.stream_options.include_usage
        await body.end(self._chunks.end("stop", build_usage(drawing) if wants_usage else None))
