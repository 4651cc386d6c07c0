"""How the samples of one HTTP response are wrapped: as the file itself or as events."""

from __future__ import annotations

import base64
import math
from abc import ABC, abstractmethod

from pydantic import BaseModel

from cantata.api.errors import describe
from cantata.api.schemas import (
    MILLISECONDS_PER_TOKEN,
    SpeechAudioDelta,
    SpeechAudioDone,
    SpeechAudioError,
    SpeechBody,
    Usage,
)
from cantata.api.speaking import Speech
from cantata.audio.wav import streaming_header
from cantata.contract.errors import CantataError
from cantata.contract.service import ServedModel

_MEDIA_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm"}


def framing_of(model: ServedModel, body: SpeechBody) -> Framing:
    """What the request asks for."""
    return _SseFraming(model, body) if body.stream_format == "sse" else _AudioFraming(model, body)


class Framing(ABC):
    """How s16le bytes are wrapped for one response."""

    media_type: str

    def __init__(self, model: ServedModel, body: SpeechBody) -> None:
        self._wav = body.response_format == "wav"
        self._model = model
        self._characters = len(body.input)
        self.media_type = _MEDIA_TYPES[body.response_format]

    def _file_header(self) -> bytes:
        if not self._wav:
            return b""
        return streaming_header(self._model.sample_rate, self._model.channels)

    @abstractmethod
    def head(self) -> bytes:
        """What comes before the first samples."""

    @abstractmethod
    def audio(self, data: bytes) -> bytes:
        """More samples."""

    @abstractmethod
    def end(self, spoken: Speech) -> bytes:
        """What comes after the last samples."""

    @abstractmethod
    def error(self, error: CantataError) -> bytes | None:
        """The end of a stream that broke; None where the framing has no word for it."""


class _AudioFraming(Framing):
    """The file itself."""

    def head(self) -> bytes:
        return self._file_header()

    def audio(self, data: bytes) -> bytes:
        return data

    def end(self, spoken: Speech) -> bytes:
        return b""

    def error(self, error: CantataError) -> bytes | None:
        return None


class _SseFraming(Framing):
    """Server-sent events with base64 pieces of the file."""

    def __init__(self, model: ServedModel, body: SpeechBody) -> None:
        super().__init__(model, body)
        self.media_type = "text/event-stream"

    def head(self) -> bytes:
        header = self._file_header()
        return self.audio(header) if header else b""

    def audio(self, data: bytes) -> bytes:
        return _event(SpeechAudioDelta(audio=base64.b64encode(data).decode("ascii")))

    def end(self, spoken: Speech) -> bytes:
        output = math.ceil(spoken.duration_s * 1000 / MILLISECONDS_PER_TOKEN)
        usage = Usage(
            input_tokens=self._characters,
            output_tokens=output,
            total_tokens=self._characters + output,
        )
        return _event(SpeechAudioDone(usage=usage))

    def error(self, error: CantataError) -> bytes | None:
        return _event(SpeechAudioError(error=describe(error).detail))


def _event(event: BaseModel) -> bytes:
    return f"data: {event.model_dump_json()}\n\n".encode()
