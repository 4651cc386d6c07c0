"""A recording as it is recognized: decoded block by block, cut where nobody speaks, a few segments
at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from cantata.api.transcription.body import SentFile, ServerVadOptions, TranscriptionBody
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.recordings import RecordingProgress, RecordingReader
from cantata.speech_input.segmenter import (
    SegmenterOptions,
    SpeechSegment,
)

_AHEAD = 2
"""Segments of one recording that are recognized, or wait for it, at a time."""
_MARGIN_S = 1.0
"""A segment is shorter than the model's longest window by this much."""


@dataclass(frozen=True, slots=True)
class TranscribedPart:
    start_s: float
    """Seconds of the recording before it."""
    transcript: Transcript
    is_translated: bool = False
    """Its text is English."""
    lead_s: float = 0.0
    """Seconds of the segment before anybody speaks."""

    @property
    def written_in(self) -> str:
        """BCP 47 tag of the text; empty: unknown."""
        return "en" if self.is_translated else self.transcript.language

    @property
    def speech_s(self) -> tuple[float, float]:
        """Where its text begins and ends in the recording, if its words have no times."""
        return self.start_s + self.lead_s, self.start_s + self.transcript.seconds


def build_request(body: TranscriptionBody, *, translate: bool) -> TranscriptionRequest:
    return TranscriptionRequest(
        language=body.only_language,
        prompt=body.bias,
        translate=translate,
        temperature=body.temperature or None,
        timestamps=True,
        logprobs="logprobs" in body.include,
        batch=True,
    )


async def transcribe_file(
    reader: RecordingReader,
    model: TranscriptionModel,
    sent: SentFile,
    body: TranscriptionBody,
    request: TranscriptionRequest,
    progress: RecordingProgress,
) -> AsyncGenerator[TranscribedPart, None]:
    """What is said in a recording, segment by segment, in order.

    Raises:
        InvalidAudio: the file cannot be read, or has no sound.
        CantataError: a segment cannot be recognized.
    """
    options = _choose_segmenter_options(model, body.chunking_strategy)
    pending = _Pending(model, request)
    segments = reader.read(sent.file, options, progress, sent.param)
    reading = asyncio.create_task(pending.read(segments), name="transcription:read")
    try:
        while (part := await pending.parts.get()) is not None:
            pending.tasks.discard(part)
            yield await part
        await reading  # raises what ended it
    finally:
        await pending.cancel(reading)


class _Pending:
    """The segments of one recording that are being recognized, in order. `request`: of each
    segment."""

    def __init__(self, model: TranscriptionModel, request: TranscriptionRequest) -> None:
        self._model, self._request = model, request
        self.parts: asyncio.Queue[asyncio.Task[TranscribedPart] | None] = asyncio.Queue(_AHEAD)
        """None: no more follow."""
        self.tasks: set[asyncio.Task[TranscribedPart]] = set()
        """Those whose results nobody waits for yet."""

    async def read(self, segments: AsyncGenerator[SpeechSegment, None]) -> None:
        """Begin to recognize segments, as fast as their parts are taken."""
        try:
            async with aclosing(segments):
                async for segment in segments:
                    work = _recognize(self._model, self._request, segment)
                    task = asyncio.create_task(work, name="transcription:segment")
                    self.tasks.add(task)
                    await self.parts.put(task)
        finally:
            await self.parts.put(None)

    async def cancel(self, reading: asyncio.Task[None]) -> None:
        """End what still runs; returns when nothing does."""
        while not self.parts.empty():
            self.parts.get_nowait()
        tasks = [reading, *self.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _recognize(
    model: TranscriptionModel, request: TranscriptionRequest, segment: SpeechSegment
) -> TranscribedPart:
    async with model.run(request) as recognition:
        await recognition.feed(segment.samples)
        transcript = await recognition.finish()
    return TranscribedPart(segment.start_s, transcript, request.translate, segment.lead_s)


def _choose_segmenter_options(
    model: TranscriptionModel, strategy: str | ServerVadOptions
) -> SegmenterOptions:
    options = SegmenterOptions(model.max_window_s - _MARGIN_S)
    if not isinstance(strategy, ServerVadOptions):
        return options
    pause_ms = strategy.silence_duration_ms
    return replace(
        options,
        threshold=strategy.threshold,
        lead_s=strategy.prefix_padding_ms / 1000,
        pauses=options.pauses if pause_ms is None else ((0.0, pause_ms / 1000),),
    )
