"""What the server sends; docs/realtime.md explains it."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


def new_id(kind: str) -> str:
    """A fresh id, such as `item_...`."""
    return f"{kind}_{uuid.uuid4().hex[:20]}"


class ServerEvent(BaseModel):
    """Every event has an id."""

    model_config = ConfigDict(frozen=True)

    event_id: str = Field(default_factory=lambda: new_id("event"))


def _is_none(value: object) -> bool:
    return value is None


class ContentObject(BaseModel):
    """A part of an item, without its sound."""

    type: str
    text: Annotated[str | None, Field(exclude_if=_is_none)] = None
    transcript: Annotated[str | None, Field(exclude_if=_is_none)] = None
    """Of sound; absent while it is not known."""


class ItemObject(BaseModel):
    """An item of the conversation."""

    id: str
    object: Literal["realtime.item"] = "realtime.item"
    type: Literal["message"] = "message"
    status: str
    role: str
    content: list[ContentObject]


class TokenDetails(BaseModel):
    """By what was counted."""

    text_tokens: int
    audio_tokens: int


class ResponseUsage(BaseModel):
    """Text counts tokens of a model that answers itself, else characters; sound counts started
    50 ms."""

    total_tokens: int
    input_tokens: int
    output_tokens: int
    input_token_details: TokenDetails
    output_token_details: TokenDetails


class FailureObject(BaseModel):
    """Why a response or a transcription failed."""

    type: str
    code: str | None
    message: str


class StatusDetails(BaseModel):
    """Why a response ended before its end."""

    type: str
    reason: str | None = None
    error: FailureObject | None = None


class ResponseObject(BaseModel):
    """One answer."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: str
    status_details: StatusDetails | None = None
    output: list[ItemObject]
    conversation_id: str | None
    output_modalities: list[str]
    max_output_tokens: int | str
    audio: dict[str, Any]
    usage: ResponseUsage | None = None
    metadata: dict[str, str] | None = None


class SessionEvent(ServerEvent):
    """The whole session."""

    type: Literal["session.created", "session.updated"]
    session: dict[str, Any]


class BufferEvent(ServerEvent):
    """Of the input buffer."""

    type: Literal["input_audio_buffer.cleared"] = "input_audio_buffer.cleared"


class SpeechStartedEvent(ServerEvent):
    """Somebody speaks."""

    type: Literal["input_audio_buffer.speech_started"] = "input_audio_buffer.speech_started"
    audio_start_ms: int
    """Of all sound that was sent; where the item will begin."""
    item_id: str


class SpeechStoppedEvent(ServerEvent):
    """The turn is over."""

    type: Literal["input_audio_buffer.speech_stopped"] = "input_audio_buffer.speech_stopped"
    audio_end_ms: int
    item_id: str


class CommittedEvent(ServerEvent):
    """The buffered sound becomes this item."""

    type: Literal["input_audio_buffer.committed"] = "input_audio_buffer.committed"
    item_id: str
    previous_item_id: str | None


class IdleEvent(ServerEvent):
    """The user was silent for `idle_timeout_ms` after an answer."""

    type: Literal["input_audio_buffer.timeout_triggered"] = "input_audio_buffer.timeout_triggered"
    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class ItemEvent(ServerEvent):
    """An item came into the conversation, or is complete."""

    type: Literal["conversation.item.added", "conversation.item.done"]
    item: ItemObject
    previous_item_id: str | None


class ItemRetrieved(ServerEvent):
    """Answers `conversation.item.retrieve`."""

    type: Literal["conversation.item.retrieved"] = "conversation.item.retrieved"
    item: ItemObject


class ItemDeleted(ServerEvent):
    """It is no longer in the conversation."""

    type: Literal["conversation.item.deleted"] = "conversation.item.deleted"
    item_id: str


class ItemTruncated(ServerEvent):
    """What was not heard is forgotten."""

    type: Literal["conversation.item.truncated"] = "conversation.item.truncated"
    item_id: str
    content_index: int
    audio_end_ms: int


class TranscriptionDelta(ServerEvent):
    """Words of the user."""

    type: Literal["conversation.item.input_audio_transcription.delta"] = (
        "conversation.item.input_audio_transcription.delta"
    )
    item_id: str
    content_index: int = 0
    delta: str


class DurationUsage(BaseModel):
    """Of a transcription."""

    type: Literal["duration"] = "duration"
    seconds: float


class TranscriptionCompleted(ServerEvent):
    """All words of the user."""

    type: Literal["conversation.item.input_audio_transcription.completed"] = (
        "conversation.item.input_audio_transcription.completed"
    )
    item_id: str
    content_index: int = 0
    transcript: str
    usage: DurationUsage


class TranscriptionFailedEvent(ServerEvent):
    """The words could not be found out."""

    type: Literal["conversation.item.input_audio_transcription.failed"] = (
        "conversation.item.input_audio_transcription.failed"
    )
    item_id: str
    content_index: int = 0
    error: FailureObject


class ResponseEvent(ServerEvent):
    """A response begins, or is over."""

    type: Literal["response.created", "response.done"]
    response: ResponseObject


class RateLimits(ServerEvent):
    """This server counts requests, not tokens: the list is empty."""

    type: Literal["rate_limits.updated"] = "rate_limits.updated"
    rate_limits: list[dict[str, Any]] = []


class OutputItemEvent(ServerEvent):
    """The item of a response."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    response_id: str
    output_index: int = 0
    item: ItemObject


class _OfPart(ServerEvent):
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0


class ContentPartEvent(_OfPart):
    """The only part of that item."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    part: ContentObject


class TextDelta(_OfPart):
    """More text, or more of what is being spoken."""

    type: Literal["response.output_text.delta", "response.output_audio_transcript.delta"]
    delta: str


class TextDone(_OfPart):
    """The whole text of an answer without sound."""

    type: Literal["response.output_text.done"] = "response.output_text.done"
    text: str


class TranscriptDone(_OfPart):
    """The whole text of a spoken answer."""

    type: Literal["response.output_audio_transcript.done"] = "response.output_audio_transcript.done"
    transcript: str


class AudioDelta(_OfPart):
    """More sound, base64."""

    type: Literal["response.output_audio.delta"] = "response.output_audio.delta"
    delta: str


class AudioDone(_OfPart):
    """No more sound."""

    type: Literal["response.output_audio.done"] = "response.output_audio.done"


class ErrorBody(BaseModel):
    """What went wrong."""

    type: str
    code: str | None
    message: str
    param: str | None
    event_id: str | None
    """Of the client's event that caused it."""


class ErrorEvent(ServerEvent):
    """A client's event was refused, or the session ends next."""

    type: Literal["error"] = "error"
    error: ErrorBody
