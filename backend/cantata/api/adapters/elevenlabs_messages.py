"""Bodies, messages and options of ElevenLabs' text to speech, as its clients write and read them.

Most of their options have no meaning here and are ignored: stability, normalization, latency.
Character times are interpolated from word times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cantata.api.schemas import Name, Seed, Speed, Text, WireModel
from cantata.api.speech.messages import ContextId
from cantata.audio.formats import OutputFormat
from cantata.audio.telephone_formats import build_mono_output
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.service import SpeechModel


@dataclass(frozen=True, slots=True)
class TimedCharacter:
    character: str
    start_s: float
    end_s: float


class CharacterClock:
    """Gives each character of one utterance its time, once, as word times arrive.

    Inside a word its characters share its time evenly; characters between two words share the
    time between them.

    Args:
        start_s: when its first sample is heard.
    """

    def __init__(self, text: str, start_s: float = 0.0) -> None:
        self._text = text
        self._start_s = start_s
        self._timed = 0
        """Characters with a time so far."""
        self._until_s = start_s

    def take_until(self, words: Iterable[tuple[int, int, float, float]]) -> list[TimedCharacter]:
        """Characters up to the last of these words.

        Args:
            words: in order, each as its first character, the one behind it, and the seconds from
                the utterance's first sample at which it begins and ends. A word that occurs
                again (a number is read as several) makes its characters no longer.
        """
        timed: list[TimedCharacter] = []
        for first, end, start_s, end_s in words:
            if end > self._timed:
                timed += self._spread_characters(max(first, self._timed), self._start_s + start_s)
                self._until_s = max(self._until_s, self._start_s + start_s)
                timed += self._spread_characters(end, self._start_s + end_s)
        return timed

    def take_rest(self, duration_s: float) -> list[TimedCharacter]:
        """Characters after the last word, and a space, since another utterance may follow.

        Nothing, if no word of the utterance had a time.
        """
        if not self._timed:
            return []
        end_s = max(self._until_s, self._start_s + duration_s)
        rest = list(self._spread_characters(len(self._text), end_s))
        return [*rest, TimedCharacter(" ", self._until_s, end_s)]

    def _spread_characters(self, end: int, end_s: float) -> Iterator[TimedCharacter]:
        """The characters up to `end`, evenly over the time up to `end_s`."""
        first, start_s = self._timed, self._until_s
        if end <= first:
            return
        end_s = max(end_s, start_s)
        step_s = (end_s - start_s) / (end - first)
        self._timed, self._until_s = end, end_s
        for place, character in enumerate(self._text[first:end]):
            yield TimedCharacter(
                character, start_s + place * step_s, start_s + (place + 1) * step_s
            )


MAX_INACTIVITY_S = 180

_OUTPUT_FORMAT = re.compile(r"(mp3|pcm|wav|opus|ulaw|alaw)_(\d+)(?:_(\d+))?", re.ASCII)
_FORMATS = {"ulaw": "mulaw"}


class SynthesisQuery(BaseModel):
    """Options in the URL of every route, so numbers are text."""

    model_config = ConfigDict(frozen=True)

    output_format: Name = "mp3_44100_128"
    """Codec, sample rate in Hz, and bit rate in thousands."""

    def output(self, model: SpeechModel) -> OutputFormat:
        """The output format of a model's sound. Raises InvalidRequest: not a format, or a rate that
        it does not take."""
        parts = _OUTPUT_FORMAT.fullmatch(self.output_format)
        if parts is None:
            raise InvalidRequest(
                f"output_format {self.output_format!r} is unknown; valid: mp3_44100_128, "
                "opus_48000_64, pcm_16000, pcm_24000, wav_44100, ulaw_8000, alaw_8000, and these "
                "codecs at other rates",
                "output_format",
            )
        codec, sample_rate, kilobits = parts.groups()
        bit_rate = int(kilobits) * 1000 if kilobits else None
        return build_mono_output(
            _FORMATS.get(codec, codec), model.sample_rate, int(sample_rate), bit_rate
        )


class SynthesisFileQuery(SynthesisQuery):
    """HTTP."""

    sign: bool = False
    """Send the file when it is whole, signed with the server's certificate. Not part of
    ElevenLabs' API."""


class SynthesisSocketQuery(SynthesisQuery):
    """The WebSockets."""

    model_id: Name | None = None
    seed: Seed | None = None
    inactivity_timeout: Annotated[int, Field(ge=1, le=MAX_INACTIVITY_S)] = 20
    """A socket is closed after this many seconds without a message while nothing is spoken."""
    sync_alignment: bool = False


class VoiceSettings(WireModel):
    """Settings of a voice; only `speed` has a meaning here."""

    speed: Speed | None = None


class DictionaryLocator(WireModel):
    """A lexicon that is kept here. It has one version."""

    pronunciation_dictionary_id: Name
    version_id: Name | None = None


class SynthesisBody(WireModel):
    """POST /v1/text-to-speech/{voice_id} and its variants."""

    text: Text
    model_id: Name | None = None
    voice_settings: VoiceSettings | None = None
    seed: Seed | None = None
    pronunciation_dictionary_locators: list[DictionaryLocator] = Field(default_factory=list)


class StreamText(WireModel):
    """WebSocket stream-input: more text; an empty text ends it."""

    text: Text
    flush: bool | None = None
    voice_settings: VoiceSettings | None = None


class ContextText(WireModel):
    """WebSocket multi-stream-input: a message for one context."""

    text: Text | None = None
    """An empty text keeps the context open."""
    context_id: Annotated[
        ContextId | None, Field(validation_alias=AliasChoices("context_id", "contextId"))
    ] = None
    """Absent: the context without a name."""
    flush: bool | None = None
    close_context: bool | None = None
    close_socket: bool | None = None
    voice_settings: VoiceSettings | None = None


class _SocketOutput(WireModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True)


class SocketAlignment(_SocketOutput):
    """When characters are heard."""

    chars: list[str]
    char_start_times_ms: list[int]
    char_durations_ms: list[int]


class ElevenLabsAudio(_SocketOutput):
    """Sound of one context, times of its characters, or its end."""

    audio: str | None
    """Base64."""
    is_final: bool | None = None
    alignment: SocketAlignment | None = None
    normalized_alignment: SocketAlignment | None = None
    context_id: str | None = None


class SocketError(_SocketOutput):
    """A message was rejected, a context's text could not be spoken, or the connection ends."""

    error: str
    message: str
    code: int
    """The code that a WebSocket is closed with."""
    context_id: str | None = None


class CharacterAlignment(WireModel):
    """When characters are heard, in seconds from the first sample."""

    characters: list[str]
    character_start_times_seconds: list[float]
    character_end_times_seconds: list[float]


class AudioWithTimestamps(WireModel):
    """All of the sound, or one line of a stream."""

    audio_base64: str
    alignment: CharacterAlignment | None = None
    normalized_alignment: CharacterAlignment | None = None


class ElevenLabsVoice(WireModel):
    """One voice."""

    voice_id: str
    name: str
    category: Literal["premade"] = "premade"
    description: str
    labels: dict[str, str] = Field(default_factory=dict)
    preview_url: str | None = None


class ElevenLabsVoices(WireModel):
    """GET /v1/voices and /v2/voices."""

    voices: list[ElevenLabsVoice]
    has_more: bool = False
    total_count: int
    next_page_token: str | None = None


class ElevenLabsErrorDetail(WireModel):
    """What went wrong."""

    status: str
    message: str


class ElevenLabsErrorBody(WireModel):
    """The body of every HTTP error under these routes."""

    detail: ElevenLabsErrorDetail


def build_socket_alignment(characters: Sequence[TimedCharacter], since_s: float) -> SocketAlignment:
    """The WebSockets' form, in milliseconds from `since_s`.

    Each time is rounded before it is subtracted: clients that add up durations must not drift.
    """
    base = _to_milliseconds(since_s)
    starts = [_to_milliseconds(one.start_s) for one in characters]
    ends = [_to_milliseconds(one.end_s) for one in characters]
    return SocketAlignment(
        chars=[one.character for one in characters],
        char_start_times_ms=[start - base for start in starts],
        char_durations_ms=[end - start for start, end in zip(starts, ends, strict=True)],
    )


def build_http_alignment(characters: Sequence[TimedCharacter]) -> CharacterAlignment:
    return CharacterAlignment(
        characters=[one.character for one in characters],
        character_start_times_seconds=[round(one.start_s, 3) for one in characters],
        character_end_times_seconds=[round(one.end_s, 3) for one in characters],
    )


def _to_milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
