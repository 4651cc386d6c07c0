"""What both forms of a chat answer share."""

from __future__ import annotations

import logging
import time
import uuid
from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext

from cantata.api.chat.conversation import read_messages
from cantata.api.chat.measured_answer import MeasuredAnswer, open_answer
from cantata.api.chat.order import ChatOrder
from cantata.api.context import ApiContext
from cantata.api.encoder import ResponseEncoder, encoding
from cantata.api.streamed_response import Body, ClientStalled, StreamedResponse

logger = logging.getLogger(__name__)


class ChatResponse(StreamedResponse):
    """One answer. Its head is sent with its first bytes: what fails before is an HTTP error, and a
    client that leaves ends the reading of its files, too."""

    def __init__(self, context: ApiContext, order: ChatOrder, media_type: str) -> None:
        super().__init__(media_type, {}, context.settings.stall_timeout_s)
        self.context = context
        self.order = order
        self.completion_id = f"chatcmpl-{uuid.uuid4().hex}"
        self.created = int(time.time())

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the answer.

        Raises:
            CantataError: it failed before its first bytes.
        """
        try:
            await self.answer(body)
        except ClientStalled:
            logger.info("the client stopped reading; its answer is aborted")

    @abstractmethod
    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers."""

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
        """Of the sound, if there is any."""
        output = self.order.output
        return nullcontext() if output is None else encoding(output)
