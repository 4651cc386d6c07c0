"""An answer that is sent while it is made, as server-sent events."""

from __future__ import annotations

import base64
from typing import Literal

from cantata.api.chat.answers import (
    AudioDelta,
    CallDelta,
    Delta,
    FunctionDelta,
)
from cantata.api.chat.chunks import Chunks
from cantata.api.chat.completion import as_events
from cantata.api.chat.measured_answer import CallPiece, MeasuredAnswer
from cantata.api.chat.order import ChatOrder
from cantata.api.chat.response import ChatResponse
from cantata.api.chat.transcripts import new_audio_id
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.contract.data.chat import Thought


class StreamedAnswer(ChatResponse):
    """Chunks of text and sound, in the order in which they are made."""

    def __init__(self, context: ApiContext, order: ChatOrder) -> None:
        super().__init__(context, order, SSE_MEDIA_TYPE)
        self._audio_id = new_audio_id()
        self._chunks = Chunks(self.completion_id, self.created, order.model.name)

    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers as it comes."""
        await as_events(body, self._write(body))

    async def _write(self, body: Body) -> None:
        rest = b""
        async with self.encoder() as encoder:
            async with self.opened() as answer:
                async for piece in answer:
                    if isinstance(piece, str):
                        delta = self._text(piece)
                    elif isinstance(piece, Thought):
                        delta = self._chunks.delta(Delta(reasoning_content=piece.text))
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
            return self._chunks.delta(Delta(role="assistant", content=""))
        return self._chunks.delta(Delta(role="assistant", audio=AudioDelta(id=self._audio_id)))

    def _text(self, text: str) -> bytes:
        if self.order.output is None:
            return self._chunks.delta(Delta(content=text))
        return self._chunks.delta(Delta(audio=AudioDelta(transcript=text)))

    def _call(self, piece: CallPiece) -> bytes:
        function = FunctionDelta(name=piece.name, arguments=piece.arguments)
        kind: Literal["function"] | None = None if piece.id is None else "function"
        call = CallDelta(index=piece.index, id=piece.id, type=kind, function=function)
        return self._chunks.delta(Delta(tool_calls=[call]))

    def _sound(self, data: bytes) -> bytes:
        if not data:
            return b""
        encoded = base64.b64encode(data).decode("ascii")
        return self._chunks.delta(Delta(audio=AudioDelta(data=encoded)))

    def _end(self, answer: MeasuredAnswer) -> bytes:
        expires = b""
        if self.order.output is not None:
            expires_at = self.context.transcripts.keep(self._audio_id, answer.text)
            expires = self._chunks.delta(Delta(audio=AudioDelta(expires_at=expires_at)))
        wants_usage = self.order.body.stream_options.include_usage
        usage = answer.usage if wants_usage else None
        return expires + self._chunks.end(answer.finish_reason, usage)
