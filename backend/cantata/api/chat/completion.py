"""What all answers to POST /v1/chat/completions share: how they are sent, and their events."""

from __future__ import annotations

import logging
import time
import uuid
from abc import abstractmethod
from collections.abc import Awaitable

from cantata.api.chat.answers import (
    ChatCompletionChunk,
    ChatUsage,
    ChoiceLogprobs,
    ChunkChoice,
    Delta,
    FinishReason,
)
from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.schemas import ErrorBody
from cantata.api.speech.framing import format_sse_event
from cantata.contract.data.errors import CantataError

logger = logging.getLogger(__name__)
DONE = b"data: [DONE]\n\n"


class Completion(StreamedResponse):
    """An answer being sent. Its head leaves with its first bytes: a failure before that is an HTTP
    error. When the client leaves, the reading of its files ends, too."""

    def __init__(self, context: ApiContext, media_type: str) -> None:
        super().__init__(media_type, {}, context.settings.stall_timeout_s)
        self.context = context
        self.completion_id = f"chatcmpl-{uuid.uuid4().hex}"
        self.created = int(time.time())

    async def stream(self, request_id: str, body: Body) -> None:
        """Write the answer. Raises CantataError: it failed before its first bytes."""
        try:
            await self.answer(body)
        except ClientStalled:
            logger.info("the client stopped reading; its answer is aborted")

    @abstractmethod
    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers."""


async def as_events(body: Body, writing: Awaitable[None]) -> None:
    """Server-sent events, up to a fault, which is the last of them. Raises CantataError: there was
    no event before it."""
    try:
        await writing
    except CantataError as error:
        if not body.started:
            raise
        logger.warning("answer failed after its first events: %s", error)
        await body.end(format_sse_event(ErrorBody(error=describe(error).detail)))


class Chunks:
    """Writes the server-sent events of one answer.

    Args:
        completion_id: of the answer, as the next.
        created: Unix time.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        self._completion_id, self._created, self._model = completion_id, created, model

    def delta(
        self,
        delta: Delta,
        reason: FinishReason | None = None,
        *,
        index: int = 0,
        logprobs: ChoiceLogprobs | None = None,
        usage: ChatUsage | None = None,
    ) -> bytes:
        """More of the answer with that index, or why it has ended."""
        choice = ChunkChoice(index=index, delta=delta, logprobs=logprobs, finish_reason=reason)
        return self._encode_chunk([choice], usage)

    def end(self, reason: FinishReason, usage: ChatUsage | None) -> bytes:
        """Why the only answer has ended, and the end of the stream."""
        return self.delta(Delta(), reason) + self.close(usage)

    def close(self, usage: ChatUsage | None) -> bytes:
        """What it cost if that was asked for, and the end of the stream."""
        return (b"" if usage is None else self._encode_chunk([], usage)) + DONE

    def _encode_chunk(self, choices: list[ChunkChoice], usage: ChatUsage | None) -> bytes:
        return format_sse_event(
            ChatCompletionChunk(
                id=self._completion_id,
                created=self._created,
                model=self._model,
                choices=choices,
                usage=usage,
            )
        )
