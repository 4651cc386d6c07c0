"""Events that clients send; docs/realtime.md explains them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from cantata.api.chat.tools import FunctionName
from cantata.api.schemas import Text, WireModel

ItemId = Annotated[Text, Field(min_length=1, max_length=64)]


class ClientEvent(WireModel):
    """An event may carry an id; an `error` that it causes names it."""

    event_id: Annotated[Text, Field(max_length=512)] | None = None


class SessionUpdate(ClientEvent):
    """Change some settings; the others stay."""

    type: Literal["session.update"]
    session: dict[str, Any]


class TranscriptionSessionUpdate(ClientEvent):
    """The same in the beta's name, of a session that only transcribes."""

    type: Literal["transcription_session.update"]
    session: dict[str, Any]


class AudioAppend(ClientEvent):
    """More sound, in base64. Never acknowledged."""

    type: Literal["input_audio_buffer.append"]
    audio: str


class AudioCommit(ClientEvent):
    """Make an item of the buffered sound."""

    type: Literal["input_audio_buffer.commit"]


class AudioClear(ClientEvent):
    """Drop the buffered sound."""

    type: Literal["input_audio_buffer.clear"]


class OutputAudioClear(ClientEvent):
    """Stop playing the answer: of a call alone, since elsewhere the client plays it."""

    type: Literal["output_audio_buffer.clear"]


class SentContent(WireModel):
    """A part of a message."""

    type: Literal["input_text", "input_audio", "output_text", "output_audio", "text", "audio"]
    text: Text | None = None
    audio: str | None = None
    """Base64, in the session's input format."""
    transcript: Text | None = None


class SentItem(WireModel):
    """An item to put into the conversation, or a reference to one."""

    type: Literal["message", "item_reference", "function_call", "function_call_output"] = "message"
    id: ItemId | None = None
    role: Literal["user", "assistant", "system"] | None = None
    content: list[SentContent] = Field(default_factory=list, max_length=64)
    call_id: ItemId | None = None
    """Of a function's call, and of its output."""
    name: FunctionName | None = None
    arguments: Text | None = None
    """JSON as the model wrote it."""
    output: Text | None = None
    """The result of a call."""


class ItemCreate(ClientEvent):
    """Put a message into the conversation."""

    type: Literal["conversation.item.create"]
    item: SentItem
    previous_item_id: ItemId | None = None
    """`root`: insert at the beginning. Absent: append."""


class ItemRetrieve(ClientEvent):
    """Ask for an item."""

    type: Literal["conversation.item.retrieve"]
    item_id: ItemId


class ItemTruncate(ClientEvent):
    """Tell that the listener stopped playing an answer at this point."""

    type: Literal["conversation.item.truncate"]
    item_id: ItemId
    content_index: int
    audio_end_ms: Annotated[int, Field(ge=0)]


class ItemDelete(ClientEvent):
    """Remove an item from the conversation."""

    type: Literal["conversation.item.delete"]
    item_id: ItemId


class ResponseCreate(ClientEvent):
    """Answer now."""

    type: Literal["response.create"]
    response: dict[str, Any] = Field(default_factory=dict)


class ResponseCancel(ClientEvent):
    """Stop answering."""

    type: Literal["response.cancel"]
    response_id: Text | None = None


AnyClientEvent = Annotated[
    SessionUpdate
    | TranscriptionSessionUpdate
    | AudioAppend
    | AudioCommit
    | AudioClear
    | OutputAudioClear
    | ItemCreate
    | ItemRetrieve
    | ItemTruncate
    | ItemDelete
    | ResponseCreate
    | ResponseCancel,
    Field(discriminator="type"),
]
CLIENT_EVENTS: TypeAdapter[AnyClientEvent] = TypeAdapter(AnyClientEvent)
CLIENT_TYPES = tuple(
    get_args(kind.model_fields["type"].annotation)[0]
    for kind in get_args(get_args(AnyClientEvent)[0])
)


class ResponseScope(WireModel):
    """Fields of `response.create` beyond a session's settings."""

    conversation: Literal["auto", "none"] = "auto"
    """`none`: the answer is not kept in the conversation."""
    input: Annotated[list[SentItem], Field(max_length=512)] | None = None
    """Answer these items instead of the conversation."""
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
