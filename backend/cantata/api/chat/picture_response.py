"""An answer that is a picture: what both of its forms share."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from cantata.api.chat.answers import (
    AnswerImage,
    ChatUsage,
    CompletionDetails,
    ImageUrl,
    PromptDetails,
)
from cantata.api.chat.completion import Completion
from cantata.api.chat.conversation import read_messages
from cantata.api.chat.picture_order import PictureOrder, told_in_conversation
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.images.measured_drawing import MeasuredDrawing, open_drawing
from cantata.contract.data.errors import InvalidRequest, Overloaded
from cantata.media.images import Pixels


class PictureResponse(Completion):
    """A picture as an assistant's message."""

    def __init__(self, context: ApiContext, order: PictureOrder, media_type: str) -> None:
        super().__init__(context, media_type)
        self.order = order

    @asynccontextmanager
    async def opened(self, body: Body) -> AsyncIterator[MeasuredDrawing]:
        """The conversation read, and its picture begun."""
        context, order = self.context, self.order
        with context.media.request() as media:
            messages = await read_messages(order.body.messages, media, context.transcripts)
            request = order.request(messages, body.asked_at)
            async with AsyncExitStack() as stack:
                opening = open_drawing(order.model, request, context.metrics)
                try:
                    with told_in_conversation():
                        drawing = await stack.enter_async_context(opening)
                except (InvalidRequest, Overloaded) as refusal:
                    context.metrics.rejected(order.model.name, refusal.code)
                    raise
                yield drawing

    async def image(self, pixels: Pixels) -> AnswerImage:
        """The picture's file in a `data:` URL."""
        output = self.order.output
        file = await self.context.media.write(pixels, output)
        encoded = await asyncio.to_thread(base64.b64encode, file)
        url = f"data:image/{output.kind};base64,{encoded.decode('ascii')}"
        return AnswerImage(image_url=ImageUrl(url=url), seed=self.order.seed)


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
