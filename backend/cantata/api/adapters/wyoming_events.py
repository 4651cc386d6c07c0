"""Wyoming's events: how they are read, and what the server says about itself."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from wyoming.audio import AudioChunk, AudioStart
from wyoming.event import Event
from wyoming.info import AsrModel, AsrProgram, Attribution, Info, TtsProgram, TtsVoice

from cantata import __version__
from cantata.api.context import ApiContext
from cantata.api.speech import messages
from cantata.api.speech.outbox import AudioFrame
from cantata.audio.pcm import BYTES_PER_SAMPLE, encode_s16le
from cantata.contract.data.errors import ProtocolViolation

_NAME = "cantata"
_ATTRIBUTION = Attribution(name="Cantata", url="")
_UNKNOWN_LANGUAGES = ("en",)
"""Home Assistant does not offer voices or models without a language."""


class BoundedReader:
    """The reader for `async_read_event`; rejects events that announce too much data.

    Between two events a client may be silent for long; an event that has begun must end in time,
    and the first one must come in time.

    Args:
        max_bytes: of an event's data or sound.
        event_timeout_s: for each part of an event.
    """

    def __init__(
        self, reader: asyncio.StreamReader, max_bytes: int, event_timeout_s: float
    ) -> None:
        self._reader = reader
        self._max_bytes = max_bytes
        self._timeout_s = event_timeout_s
        self._started = False

    async def readline(self) -> bytes:
        """The next line; one beyond the reader's own limit raises ValueError."""
        first = await (
            self._reader.read(1) if self._started else self._read_in_time(self._reader.read(1))
        )
        self._started = True
        if first in (b"", b"\n"):
            return first
        return first + await self._read_in_time(self._reader.readline())

    async def readexactly(self, size: int) -> bytes:
        if size > self._max_bytes:
            raise ValueError(f"the event has {size} bytes, which is too many")
        return await self._read_in_time(self._reader.readexactly(size))

    async def _read_in_time(self, reading: Coroutine[None, None, bytes]) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await reading
        except TimeoutError:
            waited = f"no complete event arrived within {self._timeout_s:g} s"
            raise ProtocolViolation(waited) from None


def make_info(context: ApiContext) -> Info:
    """What the server speaks and understands."""
    return Info(tts=[_describe_speech(context)], asr=_describe_transcription(context))


def _describe_speech(context: ApiContext) -> TtsProgram:
    voices = [
        TtsVoice(
            name=voice.id,
            attribution=_ATTRIBUTION,
            installed=True,
            description=voice.description or voice.name,
            version=__version__,
            languages=list(model.capabilities.languages or _UNKNOWN_LANGUAGES),
        )
        for model in context.service.models.values()
        for voice in model.voices
    ]
    return TtsProgram(
        name=_NAME,
        attribution=_ATTRIBUTION,
        installed=True,
        description="Streaming speech",
        version=__version__,
        voices=voices,
        supports_synthesize_streaming=True,
    )


def _describe_transcription(context: ApiContext) -> list[AsrProgram]:
    models = [
        AsrModel(
            name=model.name,
            attribution=_ATTRIBUTION,
            installed=True,
            description=model.name,
            version=__version__,
            languages=list(model.languages or _UNKNOWN_LANGUAGES),
        )
        for model in context.service.transcription_models.values()
    ]
    if not models:
        return []
    program = AsrProgram(
        name=_NAME,
        attribution=_ATTRIBUTION,
        installed=True,
        description="Streaming transcription",
        version=__version__,
        models=models,
        supports_transcript_streaming=True,
    )
    return [program]


def make_audio_start(sample_rate: int, channels: int) -> Event:
    """Sound of this form follows."""
    return AudioStart(rate=sample_rate, width=BYTES_PER_SAMPLE, channels=channels).event()


def make_audio_chunk(sound: messages.AudioStart, frame: AudioFrame) -> Event:
    chunk = AudioChunk(
        rate=sound.sample_rate,
        width=BYTES_PER_SAMPLE,
        channels=sound.channels,
        audio=encode_s16le(frame.sound),
    )
    return chunk.event()
