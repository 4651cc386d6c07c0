"""Responses and the items that they consist of."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from cantata.api.schemas import WireModel

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class OutputText(WireModel):
    """Words of an answer."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = Field(default_factory=list)
    logprobs: list[Any] = Field(default_factory=list)


class OutputMessage(WireModel):
    """The words of an answer."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Status
    content: list[OutputText]


class OutputCall(WireModel):
    """A call of a function."""

    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    """JSON as the model wrote it."""
    status: Status


class ThoughtText(WireModel):
    """Words of a thought."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class OutputThought(WireModel):
    """What the model thought before it answered."""

    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[Any] = Field(default_factory=list)
    content: list[ThoughtText]
    status: Status


OutputItem = OutputMessage | OutputCall | OutputThought


class InputDetails(WireModel):
    """The tokens of the conversation, by kind."""

    cached_tokens: int


class OutputDetails(WireModel):
    """The tokens of the answer, by kind."""

    reasoning_tokens: int


class ResponseUsage(WireModel):
    """The tokens of a response."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class ResponseFault(WireModel):
    """Why a response has failed."""

    code: str
    message: str


class IncompleteDetails(WireModel):
    """Why a response is incomplete."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseObject(WireModel):
    """The answer to POST /v1/responses."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    """Unix time."""
    status: Status
    background: Literal[False] = False
    error: ResponseFault | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None
    max_output_tokens: int | None
    model: str
    output: list[OutputItem]
    parallel_tool_calls: bool
    previous_response_id: str | None
    reasoning: dict[str, Any]
    store: bool
    temperature: float | None
    text: dict[str, Any]
    tool_choice: Any
    tools: list[dict[str, Any]]
    top_logprobs: int = 0
    top_p: float | None
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    metadata: dict[str, str]


class DeletedResponse(WireModel):
    """The answer to DELETE /v1/responses/{id}."""

    id: str
    object: Literal["response"] = "response"
    deleted: Literal[True] = True


class ResponseEvent(WireModel):
    """A server-sent event. What it has besides depends on its type."""

    model_config = ConfigDict(extra="allow")

    type: str
    sequence_number: int
