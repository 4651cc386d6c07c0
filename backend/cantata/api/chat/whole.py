"""An answer that is sent when it is complete."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from functools import partial

from cantata.api.chat.answers import AnswerAudio, AnswerMessage, ChatCompletion, Choice
from cantata.api.chat.measured_answer import CallPiece, MeasuredAnswer
from cantata.api.chat.order import ChatOrder
from cantata.api.chat.response import ChatResponse, add_usage
from cantata.api.chat.transcripts import new_audio_id
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.contract.data.chat import Message, Thought
from cantata.contract.data.errors import InvalidRequest

MAX_FILE_BYTES = 32 << 20
"""Largest file of sound; it is kept in memory until it is complete."""


class WholeAnswer(ChatResponse):
    """The whole answer as one JSON object."""

    def __init__(self, context: ApiContext, order: ChatOrder) -> None:
        super().__init__(context, order, "application/json")

    async def answer(self, body: Body) -> None:
        """Ask the model, and write all that it answers."""
        async with self.conversation() as messages:
            answers = await self.make_each(partial(self._read, messages))
        # A long file takes its time, and four times its size, to be written as text.
        data = await asyncio.to_thread(self._written, answers)
        await body.write_in_parts(data)
        await body.end()

    async def _read(
        self, messages: tuple[Message, ...], number: int
    ) -> tuple[MeasuredAnswer, bytearray]:
        """One answer to its end, with its file of sound."""
        file = bytearray()
        async with self.encoder() as encoder:
            async with self.opened(messages, number) as answer:
                async for piece in answer:
                    if encoder is not None and not isinstance(piece, str | Thought | CallPiece):
                        file += await encoder.feed(self.order.mixed(piece))
                        _check_size(file)
            if encoder is not None:
                await encoder.finish_whole(file, self.context.signer)
        return answer, file

    def _written(self, answers: Sequence[tuple[MeasuredAnswer, bytearray]]) -> bytes:
        completion = ChatCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.order.model.name,
            choices=[
                Choice(
                    index=index,
                    message=self._message(answer, file),
                    logprobs=answer.scores.take(),
                    finish_reason=answer.finish_reason,
                )
                for index, (answer, file) in enumerate(answers)
            ],
            usage=add_usage([answer for answer, _ in answers]),
        )
        return completion.model_dump_json().encode()

    def _message(self, answer: MeasuredAnswer, file: bytearray) -> AnswerMessage:
        output = self.order.output
        if output is None:
            calls = answer.calls or None
            return AnswerMessage(
                content=answer.text or (None if calls else ""),
                tool_calls=calls,
                reasoning_content=answer.thought,
            )
        audio_id = new_audio_id()
        audio = AnswerAudio(
            id=audio_id,
            data=base64.b64encode(file).decode("ascii"),
            transcript=answer.text,
            expires_at=self.context.transcripts.keep(audio_id, answer.text),
        )
        return AnswerMessage(content=None, audio=audio, reasoning_content=answer.thought)


def _check_size(file: bytearray) -> None:
    if len(file) > MAX_FILE_BYTES:
        raise InvalidRequest(
            f"this answer's file would have more than {MAX_FILE_BYTES >> 20} MiB; stream it, or "
            "use a compressed audio.format",
            param="audio.format",
        )
