"""Responses with pictures: whole when all are done, or as server-sent events meanwhile."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.images.answers import (
    COMPLETED,
    PARTIAL,
    PROGRESS,
    THOUGHT,
    CompletedImage,
    DrawingProgress,
    DrawnPicture,
    ImagesAnswer,
    PartialImage,
    PictureUsage,
    ThoughtDelta,
)
from cantata.api.images.measured_drawing import Drawings, MeasuredDrawing
from cantata.api.images.validation import ValidatedImage
from cantata.api.schemas import ErrorBody
from cantata.api.speech.framing import SSE_MEDIA_TYPE, format_sse_event
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent
from cantata.media.images import Pixels
from cantata.media.request_media import RequestMedia

logger = logging.getLogger(__name__)


class ImagesResponse(StreamedResponse):
    """The pictures of one request. What fails before the head is sent is an HTTP error, and a
    client that leaves ends all of them."""

    def __init__(self, context: ApiContext, validated: ValidatedImage, media_type: str) -> None:
        super().__init__(media_type, {}, context.settings.stall_timeout_s)
        self.context = context
        self.validated = validated

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the answer. Raises CantataError: it failed before its first bytes."""
        with self.context.media.request() as media:
            references = await self._collect_references(media)
            try:
                await self.answer(self.validated.requests(references, body.asked_at), body)
            except ClientStalled:
                logger.info("the client stopped reading; its pictures are aborted")

    @abstractmethod
    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw these, and write them."""

    async def _collect_references(self, media: RequestMedia) -> list[Pixels]:
        try:
            async with asyncio.timeout(media.work_s):
                return [await media.image(sent.data, sent.param) for sent in self.validated.sent]
        except TimeoutError:
            raise InvalidRequest(
                f"image: the files take longer than {media.work_s:g} s to decode; send fewer or "
                "smaller ones",
                "image",
            ) from None


def get_unix_time() -> int:
    return int(time.time())


class WholeImages(ImagesResponse):
    """The whole answer as one JSON object."""

    def __init__(self, context: ApiContext, validated: ValidatedImage) -> None:
        super().__init__(context, validated, "application/json")

    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw all, and write them at once."""
        created = get_unix_time()
        kept = _Kept(self.context, self.validated)
        await kept.draw(requests)
        # Many large files take their time to be written as text.
        data = await asyncio.to_thread(_encode_pictures, created, kept, requests)
        await body.write_in_parts(data)
        await body.end()


class _Kept(Drawings):
    """Files, until all are there."""

    def __init__(self, context: ApiContext, validated: ValidatedImage) -> None:
        super().__init__(validated.model, context.metrics)
        self.validated = validated
        self.files: dict[int, bytes] = {}
        self.thoughts: dict[int, str | None] = {}
        self.usages: list[PictureUsage] = []
        self.size = ""
        self._media = context.media

    async def begin(self) -> None:
        """Nothing leaves before the end."""

    async def take(self, number: int, drawing: MeasuredDrawing, event: DrawingEvent) -> None:
        if isinstance(event, Image):
            self.files[number] = await self._media.write(event.pixels, self.validated.output)
            self.thoughts[number] = drawing.thought
            self.usages.append(drawing.usage)
            self.size = f"{drawing.width}x{drawing.height}"


def _encode_pictures(created: int, kept: _Kept, requests: Sequence[ImageRequest]) -> bytes:
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
        quality=kept.validated.quality,
        output_format=kept.validated.output.kind,
        usage=_sum_usages(kept.usages),
    )
    return answer.model_dump_json().encode()


def _sum_usages(usages: Sequence[PictureUsage]) -> PictureUsage:
    prompt, result = usages[0], sum(usage.output_tokens for usage in usages)
    return PictureUsage(
        input_tokens=prompt.input_tokens,
        input_tokens_details=prompt.input_tokens_details,
        output_tokens=result,
        total_tokens=prompt.input_tokens + result,
    )


class StreamedImages(ImagesResponse):
    """Events of all pictures, as they come; the head is sent once the request is admitted."""

    def __init__(self, context: ApiContext, validated: ValidatedImage) -> None:
        super().__init__(context, validated, SSE_MEDIA_TYPE)

    async def answer(self, requests: Sequence[ImageRequest], body: Body) -> None:
        """Draw all, and write of each what the client asked for."""
        try:
            await _Sent(self.context, self.validated, requests, body).draw(requests)
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("pictures failed after admission: %s", error)
            await body.end(format_sse_event(ErrorBody(error=describe(error).detail), "error"))
        else:
            await body.end()


class _Sent(Drawings):
    """Events, as they come."""

    def __init__(
        self,
        context: ApiContext,
        validated: ValidatedImage,
        requests: Sequence[ImageRequest],
        body: Body,
    ) -> None:
        super().__init__(validated.model, context.metrics)
        self._media = context.media
        self._validated = validated
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
        if self._validated.options.stream_progress:
            await self._send_progress(number, event)
        if event.pixels.size and self._partials[number] < self._validated.options.partial_images:
            await self._send_preview(number, drawing, event.pixels)

    async def _think(self, number: int, text: str) -> None:
        if text:
            event = ThoughtDelta(
                type=THOUGHT[self._validated.kind],
                image_index=number,
                created_at=get_unix_time(),
                delta=text,
            )
            await self._write(format_sse_event(event, event.type))

    async def _send_progress(self, number: int, progress: Progress) -> None:
        event = DrawingProgress(
            type=PROGRESS[self._validated.kind],
            image_index=number,
            created_at=get_unix_time(),
            step=progress.step,
            steps=progress.steps,
        )
        await self._write(format_sse_event(event, event.type))

    async def _send_preview(self, number: int, drawing: MeasuredDrawing, pixels: Pixels) -> None:
        size = drawing.width, drawing.height
        file = await self._media.write(pixels, self._validated.output, size)
        index = self._partials[number]
        self._partials[number] += 1
        await self._write_picture(
            PartialImage(
                type=PARTIAL[self._validated.kind],
                image_index=number,
                partial_image_index=index,
                created_at=get_unix_time(),
                b64_json=base64.b64encode(file).decode("ascii"),
                **self._build_fields(drawing),
            )
        )

    async def _complete(self, number: int, drawing: MeasuredDrawing, pixels: Pixels) -> None:
        file = await self._media.write(pixels, self._validated.output)
        await self._write_picture(
            CompletedImage(
                type=COMPLETED[self._validated.kind],
                image_index=number,
                created_at=get_unix_time(),
                b64_json=base64.b64encode(file).decode("ascii"),
                seed=self._requests[number].seed,
                reasoning_content=drawing.thought,
                usage=drawing.usage,
                **self._build_fields(drawing),
            )
        )

    def _build_fields(self, drawing: MeasuredDrawing) -> dict[str, Any]:
        return {
            "size": f"{drawing.width}x{drawing.height}",
            "quality": self._validated.quality,
            "output_format": self._validated.output.kind,
        }

    async def _write_picture(self, event: PartialImage | CompletedImage) -> None:
        # Megabytes of text.
        await self._write(await asyncio.to_thread(format_sse_event, event, event.type))

    async def _write(self, data: bytes) -> None:
        """Send one event at a time: a long one is sent in parts."""
        async with self._writing:
            await self._body.write_in_parts(data)
