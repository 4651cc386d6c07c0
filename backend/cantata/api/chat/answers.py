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
    """The tokens of the conversation, by kind."""

    audio_tokens: int = 0
    """Always 0: `prompt_tokens` counts them together with all others."""
    cached_tokens: int = 0
    """Those that were read from memory, because an earlier request began with them, too."""


class CompletionDetails(WireModel):
    """The tokens of the answer, by kind."""

    text_tokens: int
    audio_tokens: int
    """Blocks of 50 ms of sound; one that has begun counts."""
    reasoning_tokens: int = 0
    """Tokens of the model's thinking."""
    image_tokens: int = Field(default=0, exclude_if=lambda tokens: tokens == 0)
    """Tokens of a picture; absent if there is none."""


class ChatUsage(WireModel):
    """The tokens of one request."""

    prompt_tokens: int
    completion_tokens: int
    """Tokens of text and sound together."""
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
    """Place among the answer's pictures."""
    seed: int
    """The seed that the picture was drawn with."""


class AnswerMessage(WireModel):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    """None if the answer is spoken or only calls tools; empty if it is a picture."""
    refusal: None = None
    audio: AnswerAudio | None = None
    tool_calls: list[Call] | None = Field(default=None, exclude_if=lambda calls: calls is None)
    """Absent if the answer calls no tools."""
    images: list[AnswerImage] | None = Field(default=None, exclude_if=lambda images: images is None)
    """Absent if the answer has no pictures."""
    reasoning_content: str | None = Field(default=None, exclude_if=lambda text: text is None)
    """The model's thinking; absent if there is none."""


class LikelyToken(WireModel):
    """A token that could have been next."""

    token: str
    """Its text; U+FFFD stands for a part of a character."""
    logprob: float
    """Natural logarithm of its probability, before temperature, penalties and formats."""
    bytes: list[int]
    """Its UTF-8."""


class ScoredToken(LikelyToken):
    """A token of the answer."""

    top_logprobs: list[LikelyToken]
    """The likeliest tokens in its place, the likeliest first."""


class ChoiceLogprobs(WireModel):
    """How probable an answer's tokens were."""

    content: list[ScoredToken]
    refusal: None = None


class Choice(WireModel):
    """An answer."""

    index: int = 0
    message: AnswerMessage
    logprobs: ChoiceLogprobs | None = None
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
    """A piece of a spoken answer."""

    id: str | None = None
    """Sent in the first delta only."""
    transcript: str | None = None
    data: str | None = None
    """`pcm16`: signed 16 bit, little endian, mono, 24 kHz; base64."""
    expires_at: int | None = None
    """Sent in the last delta only."""


class FunctionDelta(SparseModel):
    """A piece of a call's name and arguments."""

    name: str | None = None
    """Sent in the first piece only."""
    arguments: str


class CallDelta(SparseModel):
    """A piece of a tool call."""

    index: int
    """Place among the answer's calls."""
    id: str | None = None
    """Sent in the first piece only, as is `type`."""
    type: Literal["function"] | None = None
    function: FunctionDelta


class Delta(SparseModel):
    """A piece of the answer."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    audio: AudioDelta | None = None
    tool_calls: list[CallDelta] | None = None
    reasoning_content: str | None = None
    images: list[AnswerImage] | None = None


class ChunkChoice(WireModel):
    """A piece of an answer."""

    index: int = 0
    delta: Delta
    logprobs: ChoiceLogprobs | None = None
    """Of the tokens that the piece consists of."""
    finish_reason: FinishReason | None = None


class ChatCompletionChunk(SparseModel):
    """Server-sent event: a piece of the answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    """Empty in the chunk that has `usage`."""
    usage: ChatUsage | None = None
    """Only in the last chunk, and only if `stream_options` asks for it, or for it in all."""
