"""Messages of the WebSocket /v1/audio/speech/stream; docs/protocol.md explains them.

Text messages are JSON objects with a `type`; binary messages are s16le samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from cantata.api.errors import describe, explain_validation
from cantata.api.schemas import (
    ErrorDetail,
    ModelOptions,
    Name,
    Seed,
    Speed,
    Temperature,
    Text,
    TimedMark,
    TimedWord,
    VoiceName,
    WireModel,
)
from cantata.contract.data.errors import CantataError, ProtocolViolation

MessageT = TypeVar("MessageT")
ContextId = Annotated[Text, Field(max_length=128)]


class _Message(WireModel):
    context_id: ContextId | None = None
    """Chosen by the client; echoed on the messages that this one causes."""


class SessionConfig(_Message, ModelOptions):
    """How the text that follows is spoken. Repeatable; replaces the previous one as a whole."""

    type: Literal["session.config"]
    model: Name | None = None
    voice: VoiceName | None = None
    speed: Speed = 1.0
    seed: Seed | None = None
    temperature: Temperature | None = None
    instructions: Text | None = None
    response_format: Literal["pcm"] = "pcm"
    split_granularity: Literal["none", "sentence", "clause", "adaptive", "word"] = "none"
    """none: text is spoken at `input.done`. sentence, clause: each as soon as it is complete.
    adaptive: sentences, and the beginning of one for whose end the listener would wait in silence.
    word: as one utterance that begins with the first words and continues as more arrive, for models
    with the capability `open_text`."""
    lexicons: list[Name] = Field(default_factory=list)
    """Kept lexicons, by id or name."""
    timestamps: bool = False
    """Whether `audio.timestamps` are sent."""


class InputText(_Message):
    """More text, appended to what is buffered."""

    type: Literal["input.text"]
    text: Text


class InputDone(_Message):
    """Speak what has been sent. The socket stays open."""

    type: Literal["input.done", "input.commit"]


class InputCancel(_Message):
    """Stop speaking now, drop buffered and waiting text. Harmless when nothing is spoken."""

    type: Literal["input.cancel"]


class SessionClose(_Message):
    """Finish what was committed, then close. Text that was not committed is dropped."""

    type: Literal["session.close"]


ClientMessage = Annotated[
    SessionConfig | InputText | InputDone | InputCancel | SessionClose,
    Field(discriminator="type"),
]

CLIENT_MESSAGES: TypeAdapter[ClientMessage] = TypeAdapter(ClientMessage)
_CLIENT_TYPES = (
    "session.config",
    "input.text",
    "input.done",
    "input.commit",
    "input.cancel",
    "session.close",
)


class SessionConfigured(_Message):
    """The configuration applies from here on; names are the served ones, not aliases."""

    type: Literal["session.configured"] = "session.configured"
    model: str
    voice: str
    sample_rate: int
    channels: int
    format: Literal["pcm_s16le"] = "pcm_s16le"


class AudioStart(_Message):
    """Binary messages up to the next `audio.done` or `error` belong to this utterance."""

    type: Literal["audio.start"] = "audio.start"
    utterance_id: str
    sample_rate: int
    channels: int
    format: Literal["pcm_s16le"] = "pcm_s16le"


class AudioTimestamps(_Message):
    """When words of the utterance are heard; sent before their sound."""

    type: Literal["audio.timestamps"] = "audio.timestamps"
    utterance_id: str
    words: list[TimedWord]
    """Offsets are into all text that was sent since the last `input.done`."""


class AudioMarks(_Message):
    """When marks of the utterance's text are reached; sent with `timestamps`."""

    type: Literal["audio.marks"] = "audio.marks"
    utterance_id: str
    marks: list[TimedMark]


class AudioDone(_Message):
    """The utterance is over. None follows for one that ended with an `error`."""

    type: Literal["audio.done"] = "audio.done"
    utterance_id: str
    samples: int
    """Samples that were sent, per channel."""
    duration_s: float
    ttfp_s: float | None
    """Seconds from the start of the utterance to its first PCM; None when there was none."""
    rtf: float | None
    """Seconds spent waiting for PCM per second of it; None when there was none."""
    cancelled: bool = False
    timeline: dict[str, float] = Field(default_factory=dict)
    """Where `ttfp_s` went: seconds by step, in order. Empty when there was no PCM."""


class InputSpoken(_Message):
    """Everything up to an `input.done` has been spoken; not sent for cancelled text."""

    type: Literal["input.spoken"] = "input.spoken"


class InputCancelled(_Message):
    """Answers every `input.cancel`: no sound of earlier text follows."""

    type: Literal["input.cancelled"] = "input.cancelled"


class SessionDone(_Message):
    """Answers `session.close`; the server closes the socket after it."""

    type: Literal["session.done"] = "session.done"


class SessionGoingAway(_Message):
    """The server is stopping. The current turn is finished, then the socket is closed."""

    type: Literal["session.going_away"] = "session.going_away"


class ErrorMessage(_Message):
    """A message was rejected or an utterance failed; the socket stays open unless closed next."""

    type: Literal["error"] = "error"
    error: ErrorDetail
    utterance_id: str | None = None
    """The utterance that failed."""
    retry_after_s: int | None = None
    """When to retry; as the header `retry-after` over HTTP."""

    @classmethod
    def of(
        cls, error: CantataError, context_id: str | None, utterance_id: str | None = None
    ) -> Self:
        described = describe(error)
        return cls(
            error=described.detail,
            context_id=context_id,
            utterance_id=utterance_id,
            retry_after_s=described.retry_after_s,
        )


ServerMessage = Annotated[
    SessionConfigured
    | AudioStart
    | AudioTimestamps
    | AudioMarks
    | AudioDone
    | InputSpoken
    | InputCancelled
    | SessionDone
    | SessionGoingAway
    | ErrorMessage,
    Field(discriminator="type"),
]

SERVER_MESSAGES: TypeAdapter[ServerMessage] = TypeAdapter(ServerMessage)


def parse_client_message(text: str) -> ClientMessage:
    """Parse one message of a client; raises as `parse_message` does."""
    return parse_message(CLIENT_MESSAGES, _CLIENT_TYPES, text)


def parse_message(messages: TypeAdapter[MessageT], types: Sequence[str], text: str) -> MessageT:
    """Parse one message of a protocol whose messages have a `type`.

    Args:
        messages: the union of them, discriminated by `type`.
        types: the valid ones, for the error on any other.
        text: JSON.

    Raises:
        ProtocolViolation: not JSON, not an object, or of no known type.
        InvalidRequest: a field is missing or has a wrong value.
    """
    try:
        return messages.validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        match problem["type"]:
            case "json_invalid":
                reason = problem.get("ctx", {}).get("error", "")
                raise ProtocolViolation(f"the message is not valid JSON: {reason}") from None
            case "union_tag_invalid" | "union_tag_not_found":
                valid = ", ".join(map(repr, types))
                raise ProtocolViolation(f"unknown message; valid types: {valid}", "type") from None
            case _ if not problem["loc"]:
                raise ProtocolViolation("a message must be a JSON object with a type") from None
        # The union's tag precedes the field's name.
        refusal = explain_validation([{**problem, "loc": problem["loc"][1:]}])
        raise refusal from None
