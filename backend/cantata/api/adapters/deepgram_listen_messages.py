"""Messages and options of Deepgram's /v1/listen, as its SDK and clients write and read them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)

from cantata.api.schemas import Name, SampleRate, Text, WireModel
from cantata.api.transcription.body import MAX_PROMPT_CHARACTERS

Term = Annotated[Text, Field(max_length=128)]
MIN_ENDPOINTING_MS = 300
"""Shorter pauses are within sentences; a recognizer needs those whole."""


_ONLY_CHANNEL = Field(default_factory=lambda: [0, 1])
"""The first of one."""


def _lower_strings(sent: Any) -> Any:
    return sent.lower() if isinstance(sent, str) else sent


Endpointing = Annotated[
    Literal["true", "false"] | Annotated[int, Field(ge=0, le=60_000)],
    BeforeValidator(_lower_strings),
]


class _ListenQuery(BaseModel):
    """Options are in the URL, so numbers are text."""

    model_config = ConfigDict(frozen=True)

    model: Name = "nova-3"
    """A served model that transcribes; any of Deepgram's names selects the first."""
    language: Annotated[str, Field(max_length=32)] | None = None
    """BCP 47 tag. Absent, or `multi`: the model finds out."""
    detect_language: Annotated[str, Field(max_length=256)] = "false"
    """Anything but false: `language` is ignored."""
    punctuate: bool = False
    smart_format: bool = False
    """Both: the transcript has marks and capitals."""
    keyterm: Annotated[list[Term], Field(max_length=100)] = []
    keywords: Annotated[list[Term], Field(max_length=100)] = []
    """Names that may occur, `name:weight`; the weight is ignored."""
    encoding: Literal["linear16", "mulaw", "alaw"] | None = None
    """Absent: a sound file."""
    sample_rate: SampleRate | None = None
    channels: Annotated[int, Field(ge=1, le=8)] = 1
    multichannel: bool = False
    callback: str | None = None

    @property
    def is_formatted(self) -> bool:
        """Whether transcripts have marks and capitals."""
        return self.punctuate or self.smart_format

    @property
    def wanted_language(self) -> str | None:
        """None: the model finds out."""
        detects = self.detect_language.lower() != "false"
        return None if detects or self.language in ("multi", "") else self.language

    @property
    def bias(self) -> str:
        """The text that biases the words."""
        words = (word.partition(":")[0] for word in self.keywords)
        return ", ".join(filter(None, (*self.keyterm, *words)))[:MAX_PROMPT_CHARACTERS]


class ListenQuery(_ListenQuery):
    """POST /v1/listen."""

    utterances: bool = False
    utt_split: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 0.8
    """Seconds without words that separate utterances."""
    paragraphs: bool = False


class ListenSocketQuery(_ListenQuery):
    """WebSocket /v1/listen."""

    interim_results: bool = False
    vad_events: bool = False
    endpointing: Endpointing = "true"
    """Milliseconds of silence that end an utterance; at least `MIN_ENDPOINTING_MS` count."""
    utterance_end_ms: Annotated[int, Field(ge=300, le=60_000)] | None = None

    @property
    def endpointing_s(self) -> float | None:
        """None: silence ends no utterance."""
        if self.endpointing == "false":
            return None
        asked_ms = 0 if self.endpointing == "true" else self.endpointing
        return max(MIN_ENDPOINTING_MS, asked_ms) / 1000


class ListenUrlBody(WireModel):
    """POST /v1/listen, where the server fetches URLs."""

    url: Text


class _SparseModel(WireModel):
    """Fields without a value are left out: some clients do not expect null."""

    @model_serializer(mode="wrap")
    def _without_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = serialize(self)
        return {name: value for name, value in written.items() if value is not None}


class KeepAlive(WireModel):
    """Nothing; a connection stays open without it, too."""

    type: Literal["KeepAlive"]


class Finalize(WireModel):
    """Report what was said so far as final; the last of it has `from_finalize`."""

    type: Literal["Finalize"]


class CloseStream(WireModel):
    """No sound follows: report the rest, and close."""

    type: Literal["CloseStream"]


ListenClientMessage = Annotated[KeepAlive | Finalize | CloseStream, Field(discriminator="type")]

LISTEN_CLIENT_MESSAGES: TypeAdapter[ListenClientMessage] = TypeAdapter(ListenClientMessage)


class ListenedWord(WireModel):
    """One word, in seconds from the beginning of the sound."""

    word: str
    """Without marks and capitals."""
    start: float
    end: float
    confidence: float
    punctuated_word: str


class ListenSentence(WireModel):
    """A part of a paragraph."""

    text: str
    start: float
    end: float


class ListenParagraph(WireModel):
    """Sentences without a long pause between them."""

    sentences: list[ListenSentence]
    num_words: int
    start: float
    end: float


class ListenParagraphs(WireModel):
    """The transcript with empty lines between its paragraphs."""

    transcript: str
    paragraphs: list[ListenParagraph]


class ListenAlternative(_SparseModel):
    """What was said; there is only one."""

    transcript: str
    confidence: float
    words: list[ListenedWord]
    """Empty, if the model knows no times."""
    languages: list[str] | None = None
    paragraphs: ListenParagraphs | None = None


class ListenModelInfo(WireModel):
    """The model, under the names that Deepgram's has."""

    name: str
    version: str
    arch: str


class ListenChannel(_SparseModel):
    """The only channel."""

    alternatives: list[ListenAlternative]
    detected_language: str | None = None


class ResultsMetadata(WireModel):
    """Metadata of a part of a stream."""

    request_id: str
    model_info: ListenModelInfo
    model_uuid: str


class ListenResults(WireModel):
    """What was said in a part of the stream."""

    type: Literal["Results"] = "Results"
    channel_index: list[int] = _ONLY_CHANNEL
    start: float
    """Seconds of the stream before the part."""
    duration: float
    is_final: bool
    """The next transcript is of what follows; until then, it replaces this one."""
    speech_final: bool
    """The speaker has been silent for as long as `endpointing` says."""
    from_finalize: bool = False
    channel: ListenChannel
    metadata: ResultsMetadata


class SpeechStartedMessage(WireModel):
    """Somebody has begun to speak; sent with `vad_events`."""

    type: Literal["SpeechStarted"] = "SpeechStarted"
    channel: list[int] = _ONLY_CHANNEL
    timestamp: float
    """Seconds of the stream before."""


class UtteranceEndMessage(WireModel):
    """No word has followed for `utterance_end_ms`."""

    type: Literal["UtteranceEnd"] = "UtteranceEnd"
    channel: list[int] = _ONLY_CHANNEL
    last_word_end: float


class RecordingMetadata(WireModel):
    """Metadata of a recording."""

    transaction_key: str = "deprecated"
    request_id: str
    sha256: str
    """Of all that was sent as sound."""
    created: str
    """When it was heard, by ISO 8601."""
    duration: float
    """Seconds of sound."""
    channels: int = 1
    models: list[str]
    model_info: dict[str, ListenModelInfo]


class ListenMetadata(RecordingMetadata):
    """The last message of a stream."""

    type: Literal["Metadata"] = "Metadata"


class ListenedUtterance(WireModel):
    """Words without a long pause between them."""

    start: float
    end: float
    confidence: float
    channel: int = 0
    transcript: str
    words: list[ListenedWord]
    id: str


class RecordingResults(_SparseModel):
    """What was said in a recording."""

    channels: list[ListenChannel]
    utterances: list[ListenedUtterance] | None = None


class ListenAnswer(WireModel):
    """Answers POST /v1/listen."""

    metadata: RecordingMetadata
    results: RecordingResults
