"""Answers that are pictures, whole and while they are made."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from cantata.api.chat.answers import (
    AnswerImage,
    AnswerMessage,
    ChatCompletion,
    ChatUsage,
    Choice,
    CompletionDetails,
    Delta,
    ImageUrl,
    PromptDetails,
)
from cantata.api.chat.completion import Chunks, Completion, as_events
from cantata.api.chat.conversation import read_messages
from cantata.api.chat.picture_validation import ValidatedPictureChat, name_conversation_fields
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.images.measured_drawing import MeasuredDrawing, open_drawing
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import InvalidRequest, Overloaded
from cantata.media.images import Pixels


class PictureResponse(Completion):
    def __init__(
        self, context: ApiContext, validated: ValidatedPictureChat, media_type: str
    ) -> None:
        super().__init__(context, media_type)
        self.validated = validated

    @asynccontextmanager
    async def open(self, body: Body) -> AsyncIterator[MeasuredDrawing]:
        """The conversation read, and its picture begun."""
        context, validated = self.context, self.validated
        with context.media.request() as media:
            messages = await read_messages(validated.body.messages, media, context.transcripts)
            request = validated.request(messages, body.asked_at)
            async with AsyncExitStack() as stack:
                opening = open_drawing(validated.model, request, context.metrics)
                try:
                    with name_conversation_fields():
                        drawing = await stack.enter_async_context(opening)
                except (InvalidRequest, Overloaded) as refusal:
                    context.metrics.count_rejection(validated.model.name, refusal.code)
                    raise
                yield drawing

    async def image(self, pixels: Pixels) -> AnswerImage:
        """The picture's file in a `data:` URL."""
        output = self.validated.output
        file = await self.context.media.write(pixels, output)
        encoded = await asyncio.to_thread(base64.b64encode, file)
        url = f"data:image/{output.kind};base64,{encoded.decode('ascii')}"
        return AnswerImage(image_url=ImageUrl(url=url), seed=self.validated.seed)


def build_usage(drawing: MeasuredDrawing) -> ChatUsage:
    """A picture's usage, in the fields of a chat completion."""
    usage = drawing.usage
    return ChatUsage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details=PromptDetails(),
        completion_tokens_details=CompletionDetails(
            text_tokens=0,
            audio_tokens=0,
            reasoning_tokens=drawing.thought_tokens,
            image_tokens=usage.output_tokens - drawing.thought_tokens,
        ),
    )


class WholePicture(PictureResponse):
    """The picture's whole answer as one JSON object."""

    def __init__(self, context: ApiContext, validated: ValidatedPictureChat) -> None:
        super().__init__(context, validated, "application/json")

    async def answer(self, body: Body) -> None:
        async with self.open(body) as drawing:
            images = [
                await self.image(event.pixels)
                async for event in drawing.run
                if isinstance(event, Image)
            ]
        # Megabytes of text.
        await body.write_in_parts(await asyncio.to_thread(self._encode_pictures, drawing, images))
        await body.end()

    def _encode_pictures(self, drawing: MeasuredDrawing, images: list[AnswerImage]) -> bytes:
        message = AnswerMessage(content="", images=images, reasoning_content=drawing.thought)
        completion = ChatCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.validated.model.name,
            choices=[Choice(message=message, finish_reason="stop")],
            usage=build_usage(drawing),
        )
        return completion.model_dump_json().encode()


class StreamedPicture(PictureResponse):
    """Server-sent events: words of a plan, the picture. Comments in between tell the steps, so that
    nobody takes the connection for dead."""

    def __init__(self, context: ApiContext, validated: ValidatedPictureChat) -> None:
        super().__init__(context, validated, SSE_MEDIA_TYPE)
        self._chunks = Chunks(self.completion_id, self.created, validated.model.name)

    async def answer(self, body: Body) -> None:
        await as_events(body, self._write(body))

    async def _write(self, body: Body) -> None:
        async with self.open(body) as drawing:
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
        wants_usage = self.validated.body.stream_options.include_usage
        await body.end(self._chunks.end("stop", build_usage(drawing) if wants_usage else None))
