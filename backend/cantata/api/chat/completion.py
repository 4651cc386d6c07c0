"""What every answer to POST /v1/chat/completions shares."""

from __future__ import annotations

import logging
import time
import uuid
from abc import abstractmethod
from collections.abc import Awaitable

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.schemas import ErrorBody
from cantata.api.speech.framing import sse_event
from cantata.contract.data.errors import CantataError

logger = logging.getLogger(__name__)


class Completion(StreamedResponse):
    """An answer being sent. Its head leaves with its first bytes: a failure before that is an HTTP
    error. When the client leaves, the reading of its files ends, too."""

    def __init__(self, context: ApiContext, media_type: str) -> None:
        super().__init__(media_type, {}, context.settings.stall_timeout_s)
        self.context = context
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


async def as_events(body: Body, writing: Awaitable[None]) -> None:
    """Server-sent events, up to a fault, which is the last of them.

    Raises:
        CantataError: there was no event before it.
    """
    try:
        await writing
    except CantataError as error:
        if not body.started:
            raise
        logger.warning("answer failed after its first events: %s", error)
        await body.end(sse_event(ErrorBody(error=describe(error).detail)))
