"""Answers to POST /v1/responses, whole and as events."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cantata.api.chat.measured_answer import MeasuredAnswer
from cantata.api.chat.response import ChatResponse
from cantata.api.chat.validation import ValidatedChat, check_chat_body
from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body
from cantata.api.responses.body import ResponsesBody
from cantata.api.responses.items import Fields, GrowingItems
from cantata.api.responses.objects import (
    IncompleteDetails,
    InputDetails,
    OutputDetails,
    OutputItem,
    ResponseEvent,
    ResponseFault,
    ResponseObject,
    ResponseUsage,
    Status,
)
from cantata.api.responses.translation import (
    ChatMessage,
    list_answer,
    list_messages,
    make_chat_body,
    rename_error_fields,
)
from cantata.api.speech.framing import SSE_MEDIA_TYPE, format_sse_event
from cantata.contract.data.errors import CantataError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ValidatedResponse:
    body: ResponsesBody
    messages: Sequence[ChatMessage]
    """The conversation up to its end, without instructions."""
    chat: ValidatedChat


async def validate_response(context: ApiContext, body: ResponsesBody) -> ValidatedResponse:
    """The checked request, with the conversation that it continues.

    Raises:
        InvalidRequest: as `check_chat_body`; names this API's field.
        ResponseNotFound: what it continues is not kept.
        Overloaded: the queue is full.
    """
    messages = list_messages(body, context.responses.find_item)
    if body.previous_response_id is not None:
        kept = context.responses.find(body.previous_response_id, "previous_response_id")
        messages = [*kept.messages, *messages]
    with rename_error_fields():
        can_think = context.get_chat_model(body.model).thinks
        validated = await check_chat_body(
            context, make_chat_body(body, messages, can_think=can_think)
        )
    return ValidatedResponse(body, messages, validated)


class ModelResponse(ChatResponse):
    """A response, whole or streamed."""

    def __init__(self, context: ApiContext, asked: ValidatedResponse, media_type: str) -> None:
        super().__init__(context, asked.chat, media_type)
        self._asked = asked
        self._response_id = f"resp_{uuid.uuid4().hex}"

    def describe(
        self, status: Status, output: Sequence[OutputItem] = (), **more: Any
    ) -> ResponseObject:
        body = self._asked.body
        return ResponseObject(
            id=self._response_id,
            created_at=self.created,
            status=status,
            instructions=body.instructions,
            max_output_tokens=body.max_output_tokens,
            model=self.validated.model.name,
            output=list(output),
            parallel_tool_calls=body.parallel_tool_calls,
            previous_response_id=body.previous_response_id,
            reasoning=body.reasoning.model_dump(),
            store=body.store,
            temperature=body.temperature,
            text={
                "format": {"type": "text"},
                **body.text.model_dump(by_alias=True, exclude_none=True),
            },
            tool_choice=body.model_dump()["tool_choice"],
            tools=[tool.model_dump(exclude_none=True) for tool in body.tools],
            top_logprobs=body.top_logprobs,
            top_p=body.top_p,
            metadata=body.metadata,
            **more,
        )

    def finish(self, answer: MeasuredAnswer, items: GrowingItems) -> ResponseObject:
        """The response at its end, kept if it is to be."""
        usage = read_usage(answer)
        if answer.finish_reason == "length":
            cut = IncompleteDetails()
            done = self.describe("incomplete", items.items, usage=usage, incomplete_details=cut)
        else:
            done = self.describe("completed", items.items, usage=usage)
        if self._asked.body.store:
            messages = [*self._asked.messages, *list_answer(items.items)]
            self.context.responses.keep(done, messages)
        return done


class WholeModelResponse(ModelResponse):
    """The whole response as one JSON object."""

    def __init__(self, context: ApiContext, asked: ValidatedResponse) -> None:
        super().__init__(context, asked, "application/json")

    async def answer(self, body: Body) -> None:
        items = GrowingItems()
        with rename_error_fields():
            async with self.conversation() as messages, self.open(messages) as answer:
                async for piece in answer:
                    list(items.add(piece, answer.scores.take()))
        list(items.end(find_status(answer), answer.scores.take()))
        await body.write_in_parts(self.finish(answer, items).model_dump_json().encode())
        await body.end()


class StreamedModelResponse(ModelResponse):
    """Server-sent events, numbered, up to the response's end."""

    def __init__(self, context: ApiContext, asked: ValidatedResponse) -> None:
        super().__init__(context, asked, SSE_MEDIA_TYPE)
        self._number = 0

    async def answer(self, body: Body) -> None:
        """Ask the model, and write what it answers as it comes. A fault after the first events ends
        the response, and is told in the last of them."""
        items = GrowingItems()
        try:
            with rename_error_fields():
                await self._write(body, items)
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("response failed after its first events: %s", error)
            detail = describe(error).detail
            fault = ResponseFault(code=detail.code or "server_error", message=detail.message)
            failed = self.describe("failed", items.items, error=fault)
            await body.end(self._build_event("response.failed", failed))

    async def _write(self, body: Body, items: GrowingItems) -> None:
        async with self.conversation() as messages, self.open(messages) as answer:
            begun = self.describe("in_progress")
            await body.write(
                self._build_event("response.created", begun)
                + self._build_event("response.in_progress", begun)
            )
            async for piece in answer:
                events = items.add(piece, answer.scores.take())
                await body.write(b"".join(map(self._encode_event, events)))
        ending = items.end(find_status(answer), answer.scores.take())
        last = b"".join(map(self._encode_event, ending))
        done = self.finish(answer, items)
        await body.end(last + self._build_event(f"response.{done.status}", done))

    def _build_event(self, name: str, response: ResponseObject) -> bytes:
        return self._encode_event((name, {"response": response.model_dump()}))

    def _encode_event(self, fields: Fields) -> bytes:
        name, more = fields
        event = ResponseEvent(type=name, sequence_number=self._number, **more)
        self._number += 1
        return format_sse_event(event, name)


def find_status(answer: MeasuredAnswer) -> Status:
    return "incomplete" if answer.finish_reason == "length" else "completed"


def read_usage(answer: MeasuredAnswer) -> ResponseUsage:
    """The tokens of a whole answer, under this API's names."""
    usage = answer.usage
    thought = usage.completion_tokens_details.reasoning_tokens
    return ResponseUsage(
        input_tokens=usage.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=usage.prompt_tokens_details.cached_tokens),
        output_tokens=usage.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=thought),
        total_tokens=usage.total_tokens,
    )
