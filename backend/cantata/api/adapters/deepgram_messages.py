"""Messages and options of Deepgram's /v1/speak, as its SDK and clients write and read them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cantata.api.schemas import Name, Speed, Text, WireModel
from cantata.audio.formats import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE

Encoding = Literal["linear16", "mulaw", "alaw", "mp3", "opus", "flac", "aac"]
SampleRate = Annotated[int, Field(ge=MIN_SAMPLE_RATE, le=MAX_SAMPLE_RATE)]


class _SpeakQuery(BaseModel):
    """Options are in the URL, so numbers are text."""

    model_config = ConfigDict(frozen=True)

    model: Name = "aura-asteria-en"
    """A served voice or model; any of Deepgram's names selects the default voice."""
    sample_rate: SampleRate | None = None
    speed: Speed = 1.0


class SpeakSocketQuery(_SpeakQuery):
    """WebSocket /v1/speak."""

    encoding: Literal["linear16", "mulaw", "alaw"] = "linear16"
    container: Literal["none"] = "none"


class SpeakQuery(_SpeakQuery):
    """POST /v1/speak."""

    encoding: Encoding = "mp3"
    container: Literal["wav", "ogg", "none"] | None = None
    """Absent: wav for raw samples, ogg for opus, none for the rest."""
    bit_rate: Annotated[int, Field(ge=4_000, le=650_000)] | None = None
    sign: bool = False
    """Send the file when it is whole, signed with the server's certificate. Not part of Deepgram's
    API."""


class DeepgramSpeakBody(WireModel):
    """POST /v1/speak."""

    text: Text


class DeepgramSpeak(WireModel):
    """More text; spoken sentence by sentence as it arrives."""

    type: Literal["Speak"]
    text: Text


class Flush(WireModel):
    """Speak what is buffered too; answered by `Flushed` after its sound."""

    type: Literal["Flush"]


class Clear(WireModel):
    """Stop speaking now and drop waiting text; answered by `Cleared`."""

    type: Literal["Clear"]


class Close(WireModel):
    """End at once."""

    type: Literal["Close"]


DeepgramClientMessage = Annotated[
    DeepgramSpeak | Flush | Clear | Close, Field(discriminator="type")
]

CLIENT_MESSAGES: TypeAdapter[DeepgramClientMessage] = TypeAdapter(DeepgramClientMessage)


class Metadata(WireModel):
    """Sent once, right after the connection."""

    type: Literal["Metadata"] = "Metadata"
    request_id: str
    model_name: str
    model_version: str
    model_uuid: str


class Flushed(WireModel):
    """Everything up to a `Flush` has been spoken, or has failed with an error."""

    type: Literal["Flushed"] = "Flushed"
    sequence_id: int


class Cleared(WireModel):
    """No sound of what was cleared follows."""

    type: Literal["Cleared"] = "Cleared"
    sequence_id: int


class DeepgramWarning(WireModel):
    """A message was rejected; the connection's state is unchanged."""

    type: Literal["Warning"] = "Warning"
    code: str
    description: str
    warn_code: str
    """Equal to `code`; some clients read one pair of names, some the other."""
    warn_msg: str


class DeepgramError(WireModel):
    """Some text could not be spoken, or the connection ends."""

    type: Literal["Error"] = "Error"
    code: str
    description: str
    err_code: str
    """Equal to `code`, as in the bodies of HTTP errors."""
    err_msg: str
    request_id: str


DeepgramServerMessage = Metadata | Flushed | Cleared | DeepgramWarning | DeepgramError


class DeepgramErrorBody(WireModel):
    """The body of every HTTP error under /v1/speak."""

    err_code: str
    err_msg: str
    request_id: str
