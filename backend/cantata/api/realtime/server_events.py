"""Events that the server sends; docs/realtime.md explains them."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cantata.api.transcription.answers import DurationUsage, LogprobObject


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
    """Of an answer's sound."""


class InputAudioObject(ContentObject):
    """What the user said."""

    type: Literal["input_audio"] = "input_audio"
    transcript: str | None = None
    """None until it is known, and never left out: clients insist on the field."""


class ItemObject(BaseModel):
    """An item of the conversation."""

    id: str
    object: Literal["realtime.item"] = "realtime.item"
    type: Literal["message", "function_call", "function_call_output"] = "message"
    status: str
    role: Annotated[str | None, Field(exclude_if=_is_none)] = None
    """Of a message, as the next."""
    content: Annotated[
        list[InputAudioObject | ContentObject] | None, Field(exclude_if=_is_none)
    ] = None
    call_id: Annotated[str | None, Field(exclude_if=_is_none)] = None
    """Of a function's call, and of its output."""
    name: Annotated[str | None, Field(exclude_if=_is_none)] = None
    arguments: Annotated[str | None, Field(exclude_if=_is_none)] = None
    output: Annotated[str | None, Field(exclude_if=_is_none)] = None


class TokenDetails(BaseModel):
    """Tokens by kind."""

    text_tokens: int
    audio_tokens: int


class RealtimeUsage(BaseModel):
    """Text counts as tokens of a model that hears, otherwise as characters. Sound counts as blocks
    of 50 ms; one that has begun counts."""

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


class RealtimeResponse(BaseModel):
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
    usage: RealtimeUsage | None = None
    metadata: dict[str, str] | None = None


class ResumeObject(BaseModel):
    """How a session is resumed after its connection was lost."""

    token: str
    seconds: float
    """How long it waits for its client."""


class SessionEvent(ServerEvent):
    """The whole session."""

    type: Literal[
        "session.created",
        "session.updated",
        "transcription_session.created",
        "transcription_session.updated",
    ]
    session: dict[str, Any]
    resume: Annotated[ResumeObject | None, Field(exclude_if=_is_none)] = None
    """Of `session.created`, if the client asked for it."""


class SessionResumed(ServerEvent):
    """The session goes on over this connection, and all that the client had missed came before."""

    type: Literal["session.resumed"] = "session.resumed"
    received: int
    """Events of the client that have arrived since the session began: those after them have to be
    sent again."""


class BufferEvent(ServerEvent):
    """The input buffer was cleared."""

    type: Literal["input_audio_buffer.cleared"] = "input_audio_buffer.cleared"


class PlayoutEvent(ServerEvent):
    """A call's listener begins to hear an answer, has heard all of it, or hears no more of it."""

    type: Literal[
        "output_audio_buffer.started",
        "output_audio_buffer.stopped",
        "output_audio_buffer.cleared",
    ]
    response_id: str


class SpeechStartedEvent(ServerEvent):
    """The user has begun to speak."""

    type: Literal["input_audio_buffer.speech_started"] = "input_audio_buffer.speech_started"
    audio_start_ms: int
    """Where the item will begin, in ms of all sound that was sent."""
    item_id: str


class SpeechStoppedEvent(ServerEvent):
    """The user's turn is over."""

    type: Literal["input_audio_buffer.speech_stopped"] = "input_audio_buffer.speech_stopped"
    audio_end_ms: int
    item_id: str


class CommittedEvent(ServerEvent):
    """The buffered sound becomes the item with this id."""

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
    """An item was added to the conversation, or is complete."""

    type: Literal["conversation.item.added", "conversation.item.done"]
    item: ItemObject
    previous_item_id: str | None


class ItemRetrieved(ServerEvent):
    """Answers `conversation.item.retrieve`."""

    type: Literal["conversation.item.retrieved"] = "conversation.item.retrieved"
    item: ItemObject


class ItemDeleted(ServerEvent):
    """An item was removed from the conversation."""

    type: Literal["conversation.item.deleted"] = "conversation.item.deleted"
    item_id: str


class ItemTruncated(ServerEvent):
    """The part of an answer that was not heard was forgotten."""

    type: Literal["conversation.item.truncated"] = "conversation.item.truncated"
    item_id: str
    content_index: int
    audio_end_ms: int


class TranscriptionDelta(ServerEvent):
    """More words of the user."""

    type: Literal["conversation.item.input_audio_transcription.delta"] = (
        "conversation.item.input_audio_transcription.delta"
    )
    item_id: str
    content_index: int = 0
    delta: str
    logprobs: Annotated[list[LogprobObject] | None, Field(exclude_if=_is_none)] = None
    """If the session includes them."""


class TranscriptionCompleted(ServerEvent):
    """All words of the user's item."""

    type: Literal["conversation.item.input_audio_transcription.completed"] = (
        "conversation.item.input_audio_transcription.completed"
    )
    item_id: str
    content_index: int = 0
    transcript: str
    logprobs: Annotated[list[LogprobObject] | None, Field(exclude_if=_is_none)] = None
    """If the session includes them."""
    usage: DurationUsage


class TranscriptionFailedEvent(ServerEvent):
    """The user's words could not be transcribed."""

    type: Literal["conversation.item.input_audio_transcription.failed"] = (
        "conversation.item.input_audio_transcription.failed"
    )
    item_id: str
    content_index: int = 0
    error: FailureObject


class RealtimeResponseEvent(ServerEvent):
    """A response has begun, or is over."""

    type: Literal["response.created", "response.done"]
    response: RealtimeResponse


class RateLimits(ServerEvent):
    """Rate limits; the list is empty because this server limits requests, not tokens."""

    type: Literal["rate_limits.updated"] = "rate_limits.updated"
    rate_limits: list[dict[str, Any]] = []


class OutputItemEvent(ServerEvent):
    """The item of a response has begun, or is complete."""

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
    """The only part of a response's item has begun, or is complete."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    part: ContentObject


class TextDeltaEvent(_OfPart):
    """More text of an answer, or of its transcript."""

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


class _OfCall(ServerEvent):
    response_id: str
    item_id: str
    output_index: int
    call_id: str


class ArgumentsDelta(_OfCall):
    """More of a call's arguments."""

    type: Literal["response.function_call_arguments.delta"] = (
        "response.function_call_arguments.delta"
    )
    delta: str


class ArgumentsDone(_OfCall):
    """A call is complete."""

    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    name: str
    arguments: str


class AudioDeltaEvent(_OfPart):
    """More sound, in base64."""

    type: Literal["response.output_audio.delta"] = "response.output_audio.delta"
    delta: str


class AudioDoneEvent(_OfPart):
    """The answer's sound is complete."""

    type: Literal["response.output_audio.done"] = "response.output_audio.done"


class RealtimeErrorBody(BaseModel):
    """What went wrong, and in which field."""

    type: str
    code: str | None
    message: str
    param: str | None
    event_id: str | None
    """The id of the client's event that caused the error."""


class ErrorEvent(ServerEvent):
    """A client's event was rejected, or the session is about to end."""

    type: Literal["error"] = "error"
    error: RealtimeErrorBody
