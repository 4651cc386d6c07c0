"""HTTP bodies, as clients see them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from cantata.audio.formats import MAX_SAMPLE_RATE, MIN_SAMPLE_RATE
from cantata.contract.data.errors import InvalidRequest


def _encodable(text: str) -> str:
    """JSON may escape half a surrogate pair, which no encoder downstream can write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("not valid Unicode: it contains half a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_encodable)]
Speed = Annotated[float, Field(ge=0.25, le=4.0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False)]
Name = Annotated[Text, Field(min_length=1, max_length=256)]
Transcript = Annotated[Text, Field(max_length=1000)]

ResponseFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
SampleRate = Annotated[int, Field(ge=MIN_SAMPLE_RATE, le=MAX_SAMPLE_RATE)]

MAX_BATCH_REQUESTS = 128
MAX_BATCH_INPUT_CHARACTERS = 4096
"""OpenAI's limit, even if the model takes more: a file of a batch is kept until complete."""
MILLISECONDS_PER_TOKEN = 50
"""OpenAI counts generated sound in tokens of this length; so does `usage` here."""


class WireModel(BaseModel):
    """Values are not coerced. Unknown keys are ignored, since clients of other servers send
    options of their own with every request. In an optional field, null means the same as no field:
    many clients write their unset options so."""

    model_config = ConfigDict(strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, sent: Any) -> Any:
        if not isinstance(sent, dict) or None not in sent.values():
            return sent
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {key: value for key, value in sent.items() if value is not None or key in required}


class VoiceReference(WireModel):
    """A voice by its id, as OpenAI's newer clients send it."""

    id: Name


VoiceName = Name | VoiceReference


def voice_id(voice: VoiceName | None) -> str | None:
    """The name in either way of writing it."""
    return voice.id if isinstance(voice, VoiceReference) else voice


class ModelOptions(WireModel):
    """Keeps unknown keys: models may have options of their own (`Capabilities.options`)."""

    model_config = ConfigDict(extra="allow")

    def own_options(self, names: Iterable[str]) -> dict[str, Any]:
        sent = self.model_extra or {}
        return {name: sent[name] for name in names if name in sent}


class SpeechOptions(ModelOptions):
    """A text and how to speak it; the same for a single request and for each of a batch."""

    input: Text
    """1 to the model's `max_input_characters` characters."""
    model: Name | None = None
    """Absent: the server's default model."""
    voice: VoiceName | list[VoiceName] | None = None
    """Absent: the model's default voice. A list has an uploaded voice for each speaker."""
    response_format: ResponseFormat = "mp3"
    sample_rate: SampleRate | None = None
    """Hz. Absent: the model's own. Not part of OpenAI's protocol."""
    speed: Speed = 1.0
    instructions: Text | None = None
    """Models without support ignore it, and the response says so."""
    ref_audio: Text | list[Text] | None = None
    """A recording of the speaker, as `data:audio/...;base64,...` or, where the server allows it,
    an http(s) URL; or a list of one for each speaker. For models that can follow them. Not part
    of OpenAI's protocol."""
    ref_text: Transcript | list[Transcript] | None = None
    """Transcript of `ref_audio`; with a list, one for each recording. Not part of OpenAI's
    protocol."""
    attested_by: Name | None = None
    """Who answers for the consent of the speaker of `ref_audio`, where the server asks for it. Not
    part of OpenAI's protocol."""
    seed: Seed | None = None
    """Same seed, same samples. Not part of OpenAI's protocol."""
    temperature: Temperature | None = None
    """0 is greedy. Not part of OpenAI's protocol."""
    lexicons: list[Name] = Field(default_factory=list)
    """Kept lexicons, by id or name. Not part of OpenAI's protocol."""
    verify: bool | Literal["retry"] = False
    """Hear the result with a model that transcribes. `retry`: speak again, with other seeds, what
    is not heard as written. Not part of OpenAI's protocol."""


class SpeechBody(SpeechOptions):
    """POST /v1/audio/speech."""

    stream_format: Literal["audio", "sse"] = "audio"
    timestamps: bool = False
    """Send word times; needs `stream_format` sse. Not part of OpenAI's protocol."""
    sign: bool = False
    """Send the file when it is whole, signed with the server's certificate. Not part of OpenAI's
    protocol."""

    def check_stream(self) -> None:
        """Reject timestamps in a sound file, and second attempts at, or signatures of, what has
        been sent. Raises InvalidRequest: names the alternative."""
        if self.verify == "retry" and self.stream_format == "sse":
            raise InvalidRequest(
                'verify "retry" needs "stream_format": "audio"; what was sent cannot be spoken '
                "again",
                param="verify",
            )
        if self.sign and self.stream_format == "sse":
            raise InvalidRequest(
                'sign needs "stream_format": "audio"; only a whole file can be signed', param="sign"
            )
        if self.timestamps and self.stream_format != "sse":
            raise InvalidRequest(
                'timestamps need "stream_format": "sse"; a sound file cannot carry them',
                param="timestamps",
            )


class BatchItem(SpeechOptions):
    """One text of a batch. Its file is sent whole, so there is no streaming option."""

    custom_id: Name
    """Chosen by the client; echoed on the result."""
    input: Annotated[Text, Field(max_length=MAX_BATCH_INPUT_CHARACTERS)]


def _check_unique_ids(items: list[BatchItem]) -> list[BatchItem]:
    seen = set[str]()
    for item in items:
        if item.custom_id in seen:
            raise ValueError(f"custom_id {item.custom_id!r} is used twice")
        seen.add(item.custom_id)
    return items


class BatchBody(WireModel):
    """POST /v1/audio/speech/batch."""

    requests: Annotated[
        list[BatchItem],
        Field(min_length=1, max_length=MAX_BATCH_REQUESTS),
        AfterValidator(_check_unique_ids),
    ]


class ErrorDetail(WireModel):
    """An error, in OpenAI's terms."""

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
    """What one utterance cost. Nothing is tokenized: the input counts characters, the output counts
    blocks of 50 ms of sound; one that has begun counts."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class TimedWord(WireModel):
    """When some characters of the text are heard. A number is one word, however it is read."""

    text: str
    start: float
    """Seconds from the utterance's first sample."""
    end: float
    text_start: int
    """Offset of `text` in what the client sent, in code points."""
    text_end: int


class SpeechAudioDelta(WireModel):
    """Server-sent event: more of the file, base64."""

    type: Literal["speech.audio.delta"] = "speech.audio.delta"
    audio: str


class SpeechAudioTimestamps(WireModel):
    """Server-sent event: when words are heard; sent before their sound. Not part of OpenAI's
    protocol."""

    type: Literal["speech.audio.timestamps"] = "speech.audio.timestamps"
    words: list[TimedWord]


class TimedMark(WireModel):
    """When a `<mark name="..."/>` of the text is reached."""

    name: str
    time: float
    """Seconds from the utterance's first sample."""
    text_start: int
    """Offset of the mark in what the client sent, in code points."""


class SpeechAudioMarks(WireModel):
    """Server-sent event: when marks are reached. Not part of OpenAI's protocol."""

    type: Literal["speech.audio.marks"] = "speech.audio.marks"
    marks: list[TimedMark]


class VerifiedWord(WireModel):
    """A word of the text, and what was heard in its place."""

    text: str
    text_start: int
    """Offset in what the client sent, in code points, as the next."""
    text_end: int
    confidence: float
    """0 to 1; 0: it was not heard."""
    heard: str
    """In lower case; empty: nothing."""


class SpeechVerification(WireModel):
    """What a model that transcribes heard of an utterance. Not part of OpenAI's protocol."""

    heard: str
    words: list[VerifiedWord]
    missing: list[str]
    """Words of the text that were not heard."""
    extra: list[str]
    """Words that were heard and are not in the text."""
    attempts: int = 1
    """Times that the text was spoken."""


class SpeechAudioVerification(WireModel):
    """Server-sent event: what was heard of the utterance; sent after its sound. Not part of
    OpenAI's protocol."""

    type: Literal["speech.audio.verification"] = "speech.audio.verification"
    verification: SpeechVerification


class SpeechAudioDone(WireModel):
    """Server-sent event: the utterance is complete."""

    type: Literal["speech.audio.done"] = "speech.audio.done"
    usage: Usage


class SpeechAudioError(WireModel):
    """Server-sent event: the utterance failed after sound had been sent."""

    type: Literal["speech.audio.error"] = "speech.audio.error"
    error: ErrorDetail


class BatchResult(WireModel):
    """A line of a batch's answer: one spoken text as a file."""

    custom_id: str
    audio: str
    """The file, base64."""
    content_type: str
    sample_rate: int
    """Hz."""
    channels: int
    duration_s: float
    usage: Usage
    ignored: list[str]
    """Fields that the model cannot follow."""
    verification: SpeechVerification | None = None
    """Only if it was asked for."""


class BatchFailure(WireModel):
    """A line of a batch's answer: one text that was not spoken."""

    custom_id: str
    error: ErrorDetail


class ImageLimitsObject(WireModel):
    """The pictures that a model can make."""

    default_size: str
    """`WIDTHxHEIGHT` in pixels."""
    multiple: int
    """Width and height are multiples of this."""
    min_side: int
    """Pixels."""
    max_pixels: int
    """Width times height."""
    default_steps: int
    max_steps: int
    default_guidance: float
    max_guidance: float
    """1: the model takes no guidance."""
    min_references: int
    """The least number of pictures that it edits together."""
    max_references: int
    negative_prompt: bool
    """Whether a request may have one."""
    options: dict[str, dict[str, Any]]
    """Request fields of the model's own: name -> JSON Schema."""
    conversations: bool
    """The model also draws in POST /v1/chat/completions."""
    note: str
    """A note for users of the model; may be empty."""


class TranscriptionLimitsObject(WireModel):
    """The recordings that a model can transcribe."""

    languages: list[str]
    """BCP 47, the most usual first; empty: unknown. One: it knows no other."""
    translates: bool
    """It can write other languages in English."""
    word_times: bool
    """It knows when each word is spoken."""
    max_bytes: int
    """Size of the largest file."""
    max_seconds: float
    """Length of the longest recording."""


class ModelObject(WireModel):
    """An entry of GET /v1/models."""

    id: str
    object: Literal["model"] = "model"
    created: int
    """Unix time; the start of this server."""
    owned_by: str = "cantata"
    input_modalities: list[str]
    """`text`, `audio`, `image`, `video`. Not part of OpenAI's protocol, nor is
    `output_modalities`."""
    output_modalities: list[str]
    images: ImageLimitsObject | None = None
    """Only for models that draw. Not part of OpenAI's protocol, nor is `transcription`."""
    transcription: TranscriptionLimitsObject | None = None
    """Only for models that transcribe."""


class ModelList(WireModel):
    """GET /v1/models."""

    object: Literal["list"] = "list"
    data: list[ModelObject]


class FormatObject(WireModel):
    """A value of `response_format` that a model's sound can be sent in."""

    id: str
    media_type: str
    sample_rates: list[int] | None
    """Hz; null: any from 8000 to 48000."""


class CapabilitiesObject(WireModel):
    """What a model can do beyond speaking a text in one of its voices."""

    instructions: bool
    """Follows `instructions`; other models ignore them."""
    references: bool
    """Follows the recording of any speaker."""
    max_references: int
    """Recordings that one request may follow, one for each speaker; 0: none."""
    languages: list[str]
    """BCP 47; empty: unknown."""
    voice_blends: bool
    """`voice` may be a mixture of voices: `a+b`, or with weights `a(2)+b(1)`."""
    open_text: bool
    """Speaks a text while it arrives: `split_granularity` may be `word`."""
    pauses: bool
    """The model makes pauses between words itself, about as long as asked. Other models' pauses are
    exact silence."""
    # JSON has no tuples.
    paces: Annotated[tuple[float, float], Field(strict=False)]
    """Slowest and fastest `speed` that the model itself can speak; beyond them, the server
    stretches its sound."""
    speaker_tag: str
    """Marks the beginning of a speaker's turn in a text, with `{n}` for the speaker's number from
    0. Empty: a text has one speaker."""
    options: dict[str, dict[str, Any]]
    """Request fields of the model's own: name -> JSON Schema."""


class AudioModelObject(WireModel):
    """An entry of GET /v1/audio/models."""

    id: str
    name: str
    sample_rate: int
    """Hz of what it makes, and of what is sent when nothing else is asked for."""
    channels: int
    max_input_characters: int
    default_voice: str
    sampled: bool
    """Whether requests without `temperature` are random: if not, `seed` alone changes nothing."""
    formats: list[FormatObject]
    capabilities: CapabilitiesObject


class AudioModelList(WireModel):
    """GET /v1/audio/models."""

    models: list[AudioModelObject]
