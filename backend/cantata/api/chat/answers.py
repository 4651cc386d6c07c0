"""Answers to POST /v1/chat/completions, whole and in pieces."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from cantata.api.chat.tools import Call
from cantata.api.schemas import WireModel

FinishReason = Literal["stop", "length", "tool_calls"]


class SparseModel(WireModel):
    """Is sent without the fields that are None."""

    @model_serializer(mode="wrap")
    def _without_nones(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


class PromptDetails(WireModel):
    """What the conversation consists of."""

    audio_tokens: int = 0
    """Always 0: they are counted in `prompt_tokens`, together with all others."""
    cached_tokens: int = 0


class CompletionDetails(WireModel):
    """What the answer consists of."""

    text_tokens: int
    audio_tokens: int
    """Started 50 ms of its sound."""
    reasoning_tokens: int = 0
    """Of the words in which an answer was thought of."""
    image_tokens: int = Field(default=0, exclude_if=lambda tokens: tokens == 0)
    """Of a picture; absent if there is none."""


class ChatUsage(WireModel):
    """What one answer cost."""

    prompt_tokens: int
    completion_tokens: int
    """Of text and sound."""
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class AnswerAudio(WireModel):
    """A spoken answer."""

    id: str
    """Stands for the answer in later requests, until `expires_at`."""
    data: str
    """The file, base64."""
    transcript: str
    expires_at: int
    """Unix time."""


class ImageUrl(WireModel):
    """Where a picture is."""

    url: str
    """`data:image/...;base64,...`"""


class AnswerImage(WireModel):
    """A picture of an answer. Not part of OpenAI's protocol, but of other services'."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl
    index: Literal[0] = 0
    """Among the answer's pictures."""
    seed: int
    """It was drawn with."""


class AnswerMessage(WireModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    """None if it is spoken, or only calls tools; empty if it is a picture."""
    refusal: None = None
    audio: AnswerAudio | None = None
    tool_calls: list[Call] | None = Field(default=None, exclude_if=lambda calls: calls is None)
    """Absent if there are none."""
    images: list[AnswerImage] | None = Field(default=None, exclude_if=lambda images: images is None)
    """Absent if there are none."""
    reasoning_content: str | None = Field(default=None, exclude_if=lambda text: text is None)
    """In which words the answer was thought of; absent if in none."""


class Choice(WireModel):
    """The only answer."""

    index: Literal[0] = 0
    message: AnswerMessage
    logprobs: None = None
    finish_reason: FinishReason


class ChatCompletion(WireModel):
    """The answer to POST /v1/chat/completions."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    """Unix time."""
    model: str
    choices: list[Choice]
    usage: ChatUsage


class AudioDelta(SparseModel):
    """More of a spoken answer."""

    id: str | None = None
    """First."""
    transcript: str | None = None
    data: str | None = None
    """`pcm16`: signed 16 bit, little endian, mono, 24 kHz; base64."""
    expires_at: int | None = None
    """Last."""


class FunctionDelta(SparseModel):
    """More of a call."""

    name: str | None = None
    """First."""
    arguments: str


class CallDelta(SparseModel):
    """More of a call."""

    index: int
    """Among the answer's calls."""
    id: str | None = None
    """First, as the next."""
    type: Literal["function"] | None = None
    function: FunctionDelta


class Delta(SparseModel):
    """More of the answer."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    audio: AudioDelta | None = None
    tool_calls: list[CallDelta] | None = None
    reasoning_content: str | None = None
    images: list[AnswerImage] | None = None


class ChunkChoice(WireModel):
    """More of the only answer."""

    index: Literal[0] = 0
    delta: Delta
    logprobs: None = None
    finish_reason: FinishReason | None = None


class ChatCompletionChunk(SparseModel):
    """Server-sent event: more of the answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    """Empty where `usage` is."""
    usage: ChatUsage | None = None
    """In the last one, if it was asked for."""
