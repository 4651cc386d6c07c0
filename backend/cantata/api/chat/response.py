"""What whole and streamed answers share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from cantata.api.chat.completion import Completion
from cantata.api.chat.conversation import read_messages
from cantata.api.chat.measured_answer import MeasuredAnswer, open_answer
from cantata.api.chat.order import ChatOrder
from cantata.api.context import ApiContext
from cantata.api.speech.encoder import ResponseEncoder, encoding


class ChatResponse(Completion):
    """An answer in text or speech."""

    def __init__(self, context: ApiContext, order: ChatOrder, media_type: str) -> None:
        super().__init__(context, media_type)
        self.order = order

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[MeasuredAnswer]:
        """The conversation read, and its answer open."""
        context, order = self.context, self.order
        with context.media.request() as media:
            body = order.body
            messages = await read_messages(
                body.messages,
                media,
                context.transcripts,
                films=body.mm_processor_kwargs.use_audio_in_video,
            )
            request = order.request(messages)
            async with open_answer(order.model, request, body.stops, context.metrics) as answer:
                yield answer

    def encoder(self) -> AbstractAsyncContextManager[ResponseEncoder | None]:
        """The encoder of the sound; None if the answer is not spoken."""
        output = self.order.output
        return nullcontext() if output is None else encoding(output)
