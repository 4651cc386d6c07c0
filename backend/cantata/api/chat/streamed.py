"""An answer that is sent while it is made, as server-sent events."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from typing import Literal

from cantata.api.chat.answers import (
    AudioDelta,
    CallDelta,
    ChatUsage,
    ChoiceLogprobs,
    Delta,
    FinishReason,
    FunctionDelta,
)
from cantata.api.chat.chunks import Chunks
from cantata.api.chat.completion import as_events
from cantata.api.chat.measured_answer import CallPiece, MeasuredAnswer
from cantata.api.chat.order import ChatOrder
from cantata.api.chat.response import ChatResponse, add_usage
from cantata.api.chat.transcripts import new_audio_id
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.contract.data.chat import Message, Thought


class StreamedAnswer(ChatResponse):
    """Chunks of text and sound, in the order in which they are made; those of several answers among
    each other."""

    def __init__(self, context: ApiContext, order: ChatOrder) -> None:
        super().__init__(context, order, SSE_MEDIA_TYPE)
        self._audio_id = new_audio_id()
        self._chunks = Chunks(self.completion_id, self.created, order.model.name)
        self._options = order.body.stream_options
        self._sending = asyncio.Lock()
        self._answers: dict[int, MeasuredAnswer] = {}
        """By index, those that have begun."""

    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers as it comes."""
        await as_events(body, self._write(body))

    async def _write(self, body: Body) -> None:
        async with self.conversation() as messages:
            await self.make_each(partial(self._write_answer, body, messages))
        await body.end(self._chunks.close(self._usage(self._options.include_usage)))

    async def _write_answer(self, body: Body, messages: tuple[Message, ...], index: int) -> None:
        """One answer's chunks, up to why it has ended."""
        rest, beginning = b"", self._beginning(index)
        async with self.encoder() as encoder:
            async with self.opened(messages, index) as answer:
                self._answers[index] = answer
                async for piece in answer:
                    if isinstance(piece, str):
                        delta = self._text(piece, answer, index)
                    elif isinstance(piece, Thought):
                        delta = self._delta(Delta(reasoning_content=piece.text), index)
                    elif isinstance(piece, CallPiece):
                        delta = self._call(piece, index)
                    elif encoder is not None:
                        delta = self._sound(await encoder.feed(self.order.mixed(piece)))
                    await self._send(body, beginning + delta)
                    beginning = b""
            if encoder is not None:
                rest = self._sound(await encoder.finish())
        await self._send(body, beginning + rest + self._end(answer, index))

    async def _send(self, body: Body, data: bytes) -> None:
        """One answer's chunks at a time."""
        async with self._sending:
            await body.write(data)

    def _delta(
        self,
        delta: Delta,
        index: int = 0,
        reason: FinishReason | None = None,
        logprobs: ChoiceLogprobs | None = None,
    ) -> bytes:
        usage = self._usage(self._options.continuous_usage_stats)
        return self._chunks.delta(delta, reason, index=index, logprobs=logprobs, usage=usage)

    def _usage(self, wanted: bool) -> ChatUsage | None:
        """Of all answers so far; None: not asked for, or none has begun."""
        begun = [answer for _, answer in sorted(self._answers.items())]
        return add_usage(begun) if wanted and begun else None

    def _beginning(self, index: int) -> bytes:
        if self.order.output is None:
            return self._delta(Delta(role="assistant", content=""), index)
        return self._delta(Delta(role="assistant", audio=AudioDelta(id=self._audio_id)), index)

    def _text(self, text: str, answer: MeasuredAnswer, index: int) -> bytes:
        if self.order.output is None:
            return self._delta(Delta(content=text), index, logprobs=answer.scores.take())
        return self._delta(Delta(audio=AudioDelta(transcript=text)))

    def _call(self, piece: CallPiece, index: int) -> bytes:
        function = FunctionDelta(name=piece.name, arguments=piece.arguments)
        kind: Literal["function"] | None = None if piece.id is None else "function"
        call = CallDelta(index=piece.index, id=piece.id, type=kind, function=function)
        return self._delta(Delta(tool_calls=[call]), index)

    def _sound(self, data: bytes) -> bytes:
        if not data:
            return b""
        encoded = base64.b64encode(data).decode("ascii")
        return self._delta(Delta(audio=AudioDelta(data=encoded)))

    def _end(self, answer: MeasuredAnswer, index: int) -> bytes:
        last = b""
        if self.order.output is not None:
            expires_at = self.context.transcripts.keep(self._audio_id, answer.text)
            last = self._delta(Delta(audio=AudioDelta(expires_at=expires_at)))
        elif (left := answer.scores.take()) is not None:
            last = self._delta(Delta(content=""), index, logprobs=left)
        return last + self._delta(Delta(), index, answer.finish_reason)
