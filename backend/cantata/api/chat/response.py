"""What whole and streamed answers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeVar

from cantata.api.chat.answers import ChatUsage, CompletionDetails
from cantata.api.chat.completion import Completion
from cantata.api.chat.conversation import read_messages
from cantata.api.chat.measured_answer import MeasuredAnswer, open_answer
from cantata.api.chat.order import ChatOrder
from cantata.api.context import ApiContext
from cantata.api.speech.encoder import ResponseEncoder, encoding
from cantata.contract.data.chat import Message

T = TypeVar("T")
AT_ONCE = 4
"""Answers to one request that are made at the same time, so that others find places."""


class ChatResponse(Completion):
    """An answer in text or speech, or several."""

    def __init__(self, context: ApiContext, order: ChatOrder, media_type: str) -> None:
        super().__init__(context, media_type)
        self.order = order
        self._places = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def conversation(self) -> AsyncIterator[tuple[Message, ...]]:
        """The messages read."""
        context, body = self.context, self.order.body
        with context.media.request() as media:
            yield await read_messages(
                body.messages,
                media,
                context.transcripts,
                films=body.mm_processor_kwargs.use_audio_in_video,
            )

    @asynccontextmanager
    async def opened(
        self, messages: tuple[Message, ...], number: int = 0
    ) -> AsyncIterator[MeasuredAnswer]:
        """The answer of that number, open."""
        order = self.order
        request = order.request(messages, number)
        async with (
            self._places,
            open_answer(order.model, request, order.body.stops, self.context.metrics) as answer,
        ):
            yield answer

    async def make_each(self, make: Callable[[int], Awaitable[T]]) -> list[T]:
        """What `make` returns for the number of each answer, in their order. A fault of one ends
        all."""
        numbers = range(self.order.body.n)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_run(make, number)) for number in numbers]
        except BaseExceptionGroup as faults:
            raise faults.exceptions[0] from None
        return [task.result() for task in tasks]

    def encoder(self) -> AbstractAsyncContextManager[ResponseEncoder | None]:
        """The encoder of the sound; None if the answer is not spoken."""
        output = self.order.output
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
