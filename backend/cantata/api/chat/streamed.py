"""An answer that is sent while it is made, as server-sent events."""

from __future__ import annotations

import base64
import logging
from typing import Literal

from cantata.api.chat.answers import (
    AudioDelta,
    CallDelta,
    ChatCompletionChunk,
    ChatUsage,
    ChunkChoice,
    Delta,
    FinishReason,
    FunctionDelta,
)
from cantata.api.chat.measured_answer import CallPiece, MeasuredAnswer
from cantata.api.chat.order import ChatOrder
from cantata.api.chat.response import ChatResponse
from cantata.api.chat.transcripts import new_audio_id
from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.framing import SSE_MEDIA_TYPE, sse_event
from cantata.api.schemas import ErrorBody
from cantata.api.streamed_response import Body
from cantata.contract.data.errors import CantataError

logger = logging.getLogger(__name__)

_DONE = b"data: [DONE]\n\n"


class StreamedAnswer(ChatResponse):
    """Chunks of text and sound, in the order in which they are made."""

    def __init__(self, context: ApiContext, order: ChatOrder) -> None:
        super().__init__(context, order, SSE_MEDIA_TYPE)
        self._audio_id = new_audio_id()

    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers as it comes."""
        try:
            await self._write(body)
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("failed after its first words: %s", error)
            await body.end(sse_event(ErrorBody(error=describe(error).detail)))

    async def _write(self, body: Body) -> None:
        rest = b""
        async with self.encoder() as encoder:
            async with self.opened() as answer:
                async for piece in answer:
                    if isinstance(piece, str):
                        delta = self._text(piece)
                    elif isinstance(piece, CallPiece):
                        delta = self._call(piece)
                    elif encoder is not None:
                        delta = self._sound(await encoder.feed(self.order.mixed(piece)))
                    await body.write(self._beginning(body) + delta)
            if encoder is not None:
                rest = self._sound(await encoder.finish())
        await body.end(self._beginning(body) + rest + self._end(answer))

    def _beginning(self, body: Body) -> bytes:
        if body.started:
            return b""
        if self.order.output is None:
            return self._delta(Delta(role="assistant", content=""))
        return self._delta(Delta(role="assistant", audio=AudioDelta(id=self._audio_id)))

    def _text(self, text: str) -> bytes:
        if self.order.output is None:
            return self._delta(Delta(content=text))
        return self._delta(Delta(audio=AudioDelta(transcript=text)))

    def _call(self, piece: CallPiece) -> bytes:
        function = FunctionDelta(name=piece.name, arguments=piece.arguments)
        kind: Literal["function"] | None = None if piece.id is None else "function"
        call = CallDelta(index=piece.index, id=piece.id, type=kind, function=function)
        return self._delta(Delta(tool_calls=[call]))

    def _sound(self, data: bytes) -> bytes:
        if not data:
            return b""
        encoded = base64.b64encode(data).decode("ascii")
        return self._delta(Delta(audio=AudioDelta(data=encoded)))

    def _end(self, answer: MeasuredAnswer) -> bytes:
        expires = b""
        if self.order.output is not None:
            expires_at = self.context.transcripts.keep(self._audio_id, answer.text)
            expires = self._delta(Delta(audio=AudioDelta(expires_at=expires_at)))
        finished = self._delta(Delta(), answer.finish_reason)
        usage = b""
        if self.order.body.stream_options.include_usage:
            usage = self._chunk([], answer.usage)
        return expires + finished + usage + _DONE

    def _delta(self, delta: Delta, reason: FinishReason | None = None) -> bytes:
        return self._chunk([ChunkChoice(delta=delta, finish_reason=reason)])

    def _chunk(self, choices: list[ChunkChoice], usage: ChatUsage | None = None) -> bytes:
        return sse_event(
            ChatCompletionChunk(
                id=self.completion_id,
                created=self.created,
                model=self.order.model.name,
                choices=choices,
                usage=usage,
            )
        )
