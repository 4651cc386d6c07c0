"""How the bytes of one HTTP response are wrapped: as the file itself or as events."""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from pydantic import BaseModel

from cantata.api.errors import describe
from cantata.api.schemas import (
    MILLISECONDS_PER_TOKEN,
    SpeechAudioDelta,
    SpeechAudioDone,
    SpeechAudioError,
    SpeechAudioMarks,
    SpeechAudioTimestamps,
    SpeechAudioVerification,
    SpeechBody,
    SpeechVerification,
    TimedMark,
    Usage,
)
from cantata.api.speech.timestamps import MarkClock, to_timed_words
from cantata.audio.formats import AudioFormat
from cantata.contract.data.errors import CantataError
from cantata.contract.service import SpokenWord

SSE_MEDIA_TYPE = "text/event-stream"
EVENT_TYPES = [
    event.model_fields["type"].default
    for event in (
        SpeechAudioDelta,
        SpeechAudioTimestamps,
        SpeechAudioMarks,
        SpeechAudioVerification,
        SpeechAudioDone,
        SpeechAudioError,
    )
]


def choose_framing(body: SpeechBody, audio_format: AudioFormat) -> Framing:
    return _SseFraming(body) if body.stream_format == "sse" else AudioFraming(audio_format)


def build_usage(text: str, duration_s: float) -> Usage:
    output = math.ceil(duration_s * 1000 / MILLISECONDS_PER_TOKEN)
    return Usage(input_tokens=len(text), output_tokens=output, total_tokens=len(text) + output)


class Framing(ABC):
    """How a file's bytes are wrapped for one response."""

    media_type: str

    @abstractmethod
    def frame_audio(self, data: bytes) -> bytes:
        """More of the file, maybe nothing."""

    def frame_words(self, words: Sequence[SpokenWord]) -> bytes:
        """When words are heard, ahead of their samples, if requested."""
        return b""

    def frame_verification(self, found: SpeechVerification) -> bytes:
        """What was heard of the utterance, after its sound."""
        return b""

    @abstractmethod
    def end(self, duration_s: float) -> bytes:
        """The bytes that follow the file."""

    @abstractmethod
    def frame_error(self, error: CantataError) -> bytes | None:
        """The end of a failed stream; None if the framing cannot express it."""


class AudioFraming(Framing):
    """The file itself."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self.media_type = audio_format.media_type

    def frame_audio(self, data: bytes) -> bytes:
        return data

    def end(self, duration_s: float) -> bytes:
        return b""

    def frame_error(self, error: CantataError) -> bytes | None:
        return None


class _SseFraming(Framing):
    """Server-sent events with base64 pieces of the file."""

    media_type = SSE_MEDIA_TYPE

    def __init__(self, body: SpeechBody) -> None:
        self._timestamps = body.timestamps
        self._text = body.input
        self._marks = MarkClock(body.input)

    def frame_audio(self, data: bytes) -> bytes:
        if not data:
            return b""
        return format_sse_event(SpeechAudioDelta(audio=base64.b64encode(data).decode("ascii")))

    def frame_words(self, words: Sequence[SpokenWord]) -> bytes:
        if not (words and self._timestamps):
            return b""
        event = SpeechAudioTimestamps(words=to_timed_words(words, self._text))
        return format_sse_event(event) + _encode_marks(self._marks.take_until(words))

    def frame_verification(self, found: SpeechVerification) -> bytes:
        return format_sse_event(SpeechAudioVerification(verification=found))

    def end(self, duration_s: float) -> bytes:
        rest = _encode_marks(self._marks.take_rest(duration_s)) if self._timestamps else b""
        return rest + format_sse_event(SpeechAudioDone(usage=build_usage(self._text, duration_s)))

    def frame_error(self, error: CantataError) -> bytes | None:
        return format_sse_event(SpeechAudioError(error=describe(error).detail))


def _encode_marks(marks: list[TimedMark]) -> bytes:
    return format_sse_event(SpeechAudioMarks(marks=marks)) if marks else b""


def format_sse_event(event: BaseModel, name: str | None = None) -> bytes:
    """One server-sent event; without a name, clients see it as a `message`."""
    named = "" if name is None else f"event: {name}\n"
    return f"{named}data: {event.model_dump_json()}\n\n".encode()
