"""Answers of text or speech to POST /v1/chat/completions: whole, or as server-sent events while
they are made."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Literal, TypeVar

from cantata.api.chat.answers import (
    AnswerAudio,
    AnswerMessage,
    AudioDelta,
    CallDelta,
    ChatCompletion,
    ChatUsage,
    Choice,
    ChoiceLogprobs,
    CompletionDetails,
    Delta,
    FinishReason,
    FunctionDelta,
)
from cantata.api.chat.completion import Chunks, Completion, as_events
from cantata.api.chat.conversation import read_messages
from cantata.api.chat.measured_answer import AnswerCallDelta, MeasuredAnswer, open_answer
from cantata.api.chat.transcripts import make_audio_id
from cantata.api.chat.validation import ValidatedChat
from cantata.api.context import ApiContext
from cantata.api.http.streamed_response import Body
from cantata.api.speech.framing import SSE_MEDIA_TYPE
from cantata.api.speech.response import ResponseEncoder, encoding
from cantata.contract.data.chat import Message, Thought
from cantata.contract.data.errors import InvalidRequest

T = TypeVar("T")
AT_ONCE = 4
"""Answers to one request that are made at the same time, so that others find places."""


class ChatResponse(Completion):
    """An answer in text or speech, or several."""

    def __init__(self, context: ApiContext, validated: ValidatedChat, media_type: str) -> None:
        super().__init__(context, media_type)
        self.validated = validated
        self._places = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[tuple[Message, ...]]:
        """The messages read."""
        context, body = self.context, self.validated.body
        with context.media.request() as media:
            yield await read_messages(
                body.messages,
                media,
                context.transcripts,
                films=body.mm_processor_kwargs.use_audio_in_video,
            )

    @asynccontextmanager
    async def open(
        self, messages: tuple[Message, ...], number: int = 0
    ) -> AsyncIterator[MeasuredAnswer]:
        validated = self.validated
        request = validated.request(messages, number)
        async with (
            self._places,
            open_answer(
                validated.model, request, validated.body.stops, self.context.metrics
            ) as answer,
        ):
            yield answer

    async def make_each(self, make: Callable[[int], Awaitable[T]]) -> list[T]:
        """What `make` returns for the number of each answer, in their order. A fault of one ends
        all."""
        numbers = range(self.validated.body.n)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_run(make, number)) for number in numbers]
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        return [task.result() for task in tasks]

    def encoder(self) -> AbstractAsyncContextManager[ResponseEncoder | None]:
        """The encoder of the sound; None if the answer is not spoken."""
        output = self.validated.output
        return nullcontext() if output is None else encoding(output)


async def _run(make: Callable[[int], Awaitable[T]], number: int) -> T:
    return await make(number)


def add_usage(answers: Sequence[MeasuredAnswer]) -> ChatUsage:
    """What all answers to one request took, at least one: its conversation counts once."""
    each = [answer.usage for answer in answers]
    first, details = each[0], [usage.completion_tokens_details for usage in each]
    output = sum(usage.completion_tokens for usage in each)
    return ChatUsage(
        prompt_tokens=first.prompt_tokens,
        completion_tokens=output,
        total_tokens=first.prompt_tokens + output,
        prompt_tokens_details=first.prompt_tokens_details,
        completion_tokens_details=CompletionDetails(
            text_tokens=sum(one.text_tokens for one in details),
            audio_tokens=sum(one.audio_tokens for one in details),
            reasoning_tokens=sum(one.reasoning_tokens for one in details),
        ),
    )


MAX_FILE_BYTES = 32 << 20
"""Largest file of sound; it is kept in memory until it is complete."""


class WholeAnswer(ChatResponse):
    """The whole answer as one JSON object."""

    def __init__(self, context: ApiContext, validated: ValidatedChat) -> None:
        super().__init__(context, validated, "application/json")

    async def answer(self, body: Body) -> None:
        async with self.conversation() as messages:
            answers = await self.make_each(partial(self._read, messages))
        # A long file takes its time, and four times its size, to be written as text.
        data = await asyncio.to_thread(self._encode_answers, answers)
        await body.write_in_parts(data)
        await body.end()

    async def _read(
        self, messages: tuple[Message, ...], number: int
    ) -> tuple[MeasuredAnswer, bytearray]:
        """One answer to its end, with its file of sound."""
        file = bytearray()
        async with self.encoder() as encoder:
            async with self.open(messages, number) as answer:
                async for piece in answer:
                    if encoder is not None and not isinstance(
                        piece, str | Thought | AnswerCallDelta
                    ):
                        file += await encoder.feed(self.validated.mixed(piece))
                        _check_size(file)
            if encoder is not None:
                await encoder.finish_whole(file, self.context.signer)
        return answer, file

    def _encode_answers(self, answers: Sequence[tuple[MeasuredAnswer, bytearray]]) -> bytes:
        completion = ChatCompletion(
            id=self.completion_id,
            created=self.created,
            model=self.validated.model.name,
            choices=[
                Choice(
                    index=index,
                    message=self._build_message(answer, file),
                    logprobs=answer.scores.take(),
                    finish_reason=answer.finish_reason,
                )
                for index, (answer, file) in enumerate(answers)
            ],
            usage=add_usage([answer for answer, _ in answers]),
        )
        return completion.model_dump_json().encode()

    def _build_message(self, answer: MeasuredAnswer, file: bytearray) -> AnswerMessage:
        output = self.validated.output
        if output is None:
            calls = answer.calls or None
            return AnswerMessage(
                content=answer.text or (None if calls else ""),
                tool_calls=calls,
                reasoning_content=answer.thought,
            )
        audio_id = make_audio_id()
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


class StreamedAnswer(ChatResponse):
    """Chunks of text and sound, in the order in which they are made; those of several answers among
    each other."""

    def __init__(self, context: ApiContext, validated: ValidatedChat) -> None:
        super().__init__(context, validated, SSE_MEDIA_TYPE)
        self._audio_id = make_audio_id()
        self._chunks = Chunks(self.completion_id, self.created, validated.model.name)
        self._options = validated.body.stream_options
        self._sending = asyncio.Lock()
        self._answers: dict[int, MeasuredAnswer] = {}
        """By index, those that have begun."""

    async def answer(self, body: Body) -> None:
        await as_events(body, self._write(body))

    async def _write(self, body: Body) -> None:
        async with self.conversation() as messages:
            await self.make_each(partial(self._write_answer, body, messages))
        await body.end(self._chunks.close(self._sum_usage(self._options.include_usage)))

    async def _write_answer(self, body: Body, messages: tuple[Message, ...], index: int) -> None:
        """One answer's chunks, up to why it has ended."""
        rest, beginning = b"", self._encode_beginning(index)
        async with self.encoder() as encoder:
            async with self.open(messages, index) as answer:
                self._answers[index] = answer
                async for piece in answer:
                    if isinstance(piece, str):
                        delta = self._encode_text(piece, answer, index)
                    elif isinstance(piece, Thought):
                        delta = self._encode_delta(Delta(reasoning_content=piece.text), index)
                    elif isinstance(piece, AnswerCallDelta):
                        delta = self._call(piece, index)
                    elif encoder is not None:
                        delta = self._encode_sound(await encoder.feed(self.validated.mixed(piece)))
                    await self._send(body, beginning + delta)
                    beginning = b""
            if encoder is not None:
                rest = self._encode_sound(await encoder.finish())
        await self._send(body, beginning + rest + self._end(answer, index))

    async def _send(self, body: Body, data: bytes) -> None:
        """One answer's chunks at a time."""
        async with self._sending:
            await body.write(data)

    def _encode_delta(
        self,
        delta: Delta,
        index: int = 0,
        reason: FinishReason | None = None,
        logprobs: ChoiceLogprobs | None = None,
    ) -> bytes:
        usage = self._sum_usage(self._options.continuous_usage_stats)
        return self._chunks.delta(delta, reason, index=index, logprobs=logprobs, usage=usage)

    def _sum_usage(self, wanted: bool) -> ChatUsage | None:
        """The usage of all answers so far. None: it is not wanted, or no answer has begun."""
        begun = [answer for _, answer in sorted(self._answers.items())]
        return add_usage(begun) if wanted and begun else None

    def _encode_beginning(self, index: int) -> bytes:
        if self.validated.output is None:
            return self._encode_delta(Delta(role="assistant", content=""), index)
        return self._encode_delta(
            Delta(role="assistant", audio=AudioDelta(id=self._audio_id)), index
        )

    def _encode_text(self, text: str, answer: MeasuredAnswer, index: int) -> bytes:
        if self.validated.output is None:
            return self._encode_delta(Delta(content=text), index, logprobs=answer.scores.take())
        return self._encode_delta(Delta(audio=AudioDelta(transcript=text)))

    def _call(self, piece: AnswerCallDelta, index: int) -> bytes:
        function = FunctionDelta(name=piece.name, arguments=piece.arguments)
        kind: Literal["function"] | None = None if piece.id is None else "function"
        call = CallDelta(index=piece.index, id=piece.id, type=kind, function=function)
        return self._encode_delta(Delta(tool_calls=[call]), index)

    def _encode_sound(self, data: bytes) -> bytes:
        if not data:
            return b""
        encoded = base64.b64encode(data).decode("ascii")
        return self._encode_delta(Delta(audio=AudioDelta(data=encoded)))

    def _end(self, answer: MeasuredAnswer, index: int) -> bytes:
        last = b""
        if self.validated.output is not None:
            expires_at = self.context.transcripts.keep(self._audio_id, answer.text)
            last = self._encode_delta(Delta(audio=AudioDelta(expires_at=expires_at)))
        elif (left := answer.scores.take()) is not None:
            last = self._encode_delta(Delta(content=""), index, logprobs=left)
        return last + self._encode_delta(Delta(), index, answer.finish_reason)
