"""HTTP bodies, as clients see them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from cantata.contract.errors import InvalidRequest


def _encodable(text: str) -> str:
    """JSON may escape half a surrogate pair, which no encoder downstream can write again."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("not valid Unicode: it holds half a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Speed = Annotated[float, Field(ge=0.25, le=4.0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=256)]

ENCODABLE_FORMATS = ("wav", "pcm")
MILLISECONDS_PER_TOKEN = 50
"""OpenAI counts generated sound in tokens of this length; so does `usage` here."""


class WireModel(BaseModel):
    """Values are not coerced. Unknown keys are ignored, since clients of other servers send
    options of their own with every request."""

    model_config = ConfigDict(strict=True, frozen=True)


class VoiceReference(WireModel):
    """A voice by its id, as OpenAI's newer clients send it."""

    id: Name


VoiceName = Name | VoiceReference


def voice_id(voice: VoiceName | None) -> str | None:
    """The name in either way of writing it."""
    return voice.id if isinstance(voice, VoiceReference) else voice


class SpeechBody(WireModel):
    """POST /v1/audio/speech."""

    input: Text
    """1 to the model's `max_input_characters` characters."""
    model: Name | None = None
    """Absent: the server's default model."""
    voice: VoiceName | None = None
    """Absent: the model's default voice."""
    response_format: Literal["wav", "pcm", "mp3", "opus", "aac", "flac"] = "wav"
    """OpenAI's default is mp3, which cannot be encoded yet, so an absent format means wav."""
    speed: Speed = 1.0
    instructions: Text | None = None
    stream_format: Literal["audio", "sse"] = "audio"
    seed: Seed | None = None
    """Same seed, same samples. Not part of OpenAI's protocol."""
    temperature: Temperature | None = None
    """0 is greedy. Not part of OpenAI's protocol."""

    def check_format(self) -> None:
        """Refuse what cannot be encoded.

        Raises:
            InvalidRequest: names the formats that can.
        """
        if self.response_format not in ENCODABLE_FORMATS:
            raise InvalidRequest(
                f"response_format {self.response_format!r} is not available on this server; "
                f"valid: {', '.join(ENCODABLE_FORMATS)}",
                param="response_format",
            )


class ErrorDetail(WireModel):
    """What went wrong, in OpenAI's words."""

    message: str
    type: str
    """Class of error: invalid_request_error, rate_limit_error or server_error."""
    param: str | None = None
    """The field at fault."""
    code: str | None = None
    """Stable machine-readable name."""


class ErrorBody(WireModel):
    """The body of every response that is not a success."""

    error: ErrorDetail


class Usage(WireModel):
    """What one utterance cost. Nothing is tokenised here: input counts characters, output counts
    started 50 ms of sound."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class SpeechAudioDelta(WireModel):
    """Server-sent event: more of the file, base64."""

    type: Literal["speech.audio.delta"] = "speech.audio.delta"
    audio: str


class SpeechAudioDone(WireModel):
    """Server-sent event: the utterance is complete."""

    type: Literal["speech.audio.done"] = "speech.audio.done"
    usage: Usage


class SpeechAudioError(WireModel):
    """Server-sent event: it broke after sound had been sent."""

    type: Literal["speech.audio.error"] = "speech.audio.error"
    error: ErrorDetail


class ModelObject(WireModel):
    """An entry of GET /v1/models."""

    id: str
    object: Literal["model"] = "model"
    created: int
    """Unix time; the start of this server."""
    owned_by: str = "cantata"


class ModelList(WireModel):
    """GET /v1/models."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


class AudioModelObject(WireModel):
    """An entry of GET /v1/audio/models."""

    id: str
    name: str
    sample_rate: int
    """Hz."""
    channels: int
    max_input_characters: int
    default_voice: str


class AudioModelList(WireModel):
    """GET /v1/audio/models."""

    models: list[AudioModelObject]


class VoiceObject(WireModel):
    """An entry of GET /v1/audio/voices."""

    id: str
    name: str
    description: str
    aliases: list[str]
    """Other ids that mean this voice."""
    model: str


class VoiceList(WireModel):
    """GET /v1/audio/voices; a model's default voice comes first."""

    voices: list[VoiceObject]


class StageHealth(WireModel):
    """One stage process."""

    model: str
    stage: str
    pid: int
    alive: bool
    startup_s: float
    rss_bytes: int
    counts: dict[str, int]
    """What it holds; all zero when idle."""


class Health(WireModel):
    """GET /health."""

    status: Literal["starting", "ok", "degraded", "failed", "stopped"]
    version: str
    uptime_s: float
    default_model: str
    stages: list[StageHealth]
    message: str | None = None
    """Why it failed."""


class Readiness(WireModel):
    """GET /ready, when it is."""

    ready: Literal[True] = True
