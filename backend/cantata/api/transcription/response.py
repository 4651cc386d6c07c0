"""Transcripts of recordings as HTTP responses: whole, or streamed while they are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from starlette.datastructures import FormData

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.schemas import ErrorBody
from cantata.api.speech.framing import SSE_MEDIA_TYPE, sse_event
from cantata.api.transcription.answers import (
    DurationUsage,
    LogprobObject,
    SegmentObject,
    TranscriptionAnswer,
    TranscriptTextDelta,
    TranscriptTextDone,
    VerboseTranscription,
    WordObject,
)
from cantata.api.transcription.body import SentFile, TranscriptionBody, close_files
from cantata.api.transcription.parts import (
    TranscribedPart,
    build_request,
    transcribe_file,
)
from cantata.api.transcription.segments import (
    TranscriptSegment,
    join_texts,
    shift_words,
    split_segments,
    write_srt,
    write_vtt,
)
from cantata.contract.data.errors import CantataError
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.recordings import RecordingProgress

logger = logging.getLogger(__name__)

_MEDIA_TYPES = {
    "json": "application/json",
    "verbose_json": "application/json",
    "text": "text/plain; charset=utf-8",
    "srt": "application/x-subrip; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}
_SIGN_OF_LIFE_S = 10.0
"""A stream that has nothing to say for so long sends how far it is, as a comment."""


@dataclass(frozen=True, slots=True)
class TranscriptionOrder:
    """A validated request."""

    model: TranscriptionModel
    body: TranscriptionBody
    sent: SentFile
    form: FormData
    """Has the file; it is closed at the end."""
    translate: bool

    @property
    def media_type(self) -> str:
        """Of the answer."""
        return SSE_MEDIA_TYPE if self.body.stream else _MEDIA_TYPES[self.body.response_format]


class TranscriptionResponse(StreamedResponse):
    """The transcript of one recording. A client that leaves ends the work."""

    def __init__(self, context: ApiContext, order: TranscriptionOrder) -> None:
        super().__init__(order.media_type, {}, context.settings.stall_timeout_s)
        self._metrics = context.metrics.transcriptions
        self._reader = context.recordings
        self._order = order
        self._progress = RecordingProgress()
        self._parts: list[TranscribedPart] = []
        self._writing = asyncio.Lock()

    async def stream(self, request_id: str, body: Body) -> None:
        """Recognise the recording, and write what the client asked for."""
        order = self._order
        try:
            with self._metrics.track(order.model.name, self._progress_seconds):
                if order.body.stream:
                    await self._stream_events(body)
                else:
                    await self._recognize(body)
                    await body.write_in_parts(await asyncio.to_thread(self._write))
                    await body.end()
        except ClientStalled:
            logger.info("the client stopped reading; its transcription is aborted")
        finally:
            close_files(order.form)

    def _progress_seconds(self) -> float:
        return self._progress.seconds

    async def _stream_events(self, body: Body) -> None:
        try:
            await self._recognize(body)
            await body.write_in_parts(sse_event(await asyncio.to_thread(self._finish)))
            await body.end(b"data: [DONE]\n\n")
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("a transcription failed while it was streamed: %s", error)
            await body.end(sse_event(ErrorBody(error=describe(error).detail), "error"))

    async def _recognize(self, body: Body) -> None:
        order = self._order
        request = build_request(order.body, translate=order.translate)
        parts = transcribe_file(
            self._reader, order.model, order.sent, order.body, request, self._progress
        )
        async with aclosing(parts), _SignsOfLife(self, body) as signs:
            async for part in parts:
                self._parts.append(part)
                if order.body.stream:
                    await self._send_delta(body, part)
                    signs.touch()

    async def _send_delta(self, body: Body, part: TranscribedPart) -> None:
        transcript = part.transcript
        if not transcript.text:
            return
        is_first = not any(one.transcript.text for one in self._parts[:-1])
        delta = TranscriptTextDelta(
            delta=transcript.text if is_first else f" {transcript.text}",
            start=round(part.start_s, 3),
            end=round(part.start_s + transcript.seconds, 3),
            logprobs=self._logprobs([part]),
        )
        async with self._writing:
            await body.write_in_parts(sse_event(delta))

    def _finish(self) -> TranscriptTextDone:
        verbose = self._order.body.response_format == "verbose_json"
        return TranscriptTextDone(
            text=join_texts(self._parts),
            logprobs=self._logprobs(self._parts),
            language=self._language,
            words=self._words() if verbose and self._wants("word") else None,
            segments=self._segment_objects() if verbose and self._wants("segment") else None,
            usage=self._usage,
        )

    def _write(self) -> bytes:
        """The whole answer."""
        body = self._order.body
        match body.response_format:
            case "text":
                return f"{join_texts(self._parts)}\n".encode()
            case "srt":
                return write_srt(self._segments()).encode()
            case "vtt":
                return write_vtt(self._segments()).encode()
            case "verbose_json":
                return self._verbose().model_dump_json(exclude_none=True).encode()
        answer = TranscriptionAnswer(
            text=join_texts(self._parts), logprobs=self._logprobs(self._parts), usage=self._usage
        )
        return answer.model_dump_json(exclude_none=True).encode()

    def _verbose(self) -> VerboseTranscription:
        return VerboseTranscription(
            task="translate" if self._order.translate else "transcribe",
            language=self._language,
            duration=round(self._progress.seconds, 3),
            text=join_texts(self._parts),
            words=self._words() if self._wants("word") else None,
            segments=self._segment_objects() if self._wants("segment") else None,
            usage=self._usage,
        )

    def _wants(self, granularity: str) -> bool:
        """Whether the client asked for words or segments; segments are the default."""
        asked = self._order.body.timestamp_granularities
        return granularity in asked if asked else granularity == "segment"

    @property
    def _language(self) -> str:
        """The one that most of the text is in."""
        lengths: dict[str, int] = {}
        for part in self._parts:
            transcript = part.transcript
            lengths[transcript.language] = lengths.get(transcript.language, 0) + len(
                transcript.text
            )
        asked = self._order.body.language or ""
        return max(lengths, key=lambda name: lengths[name], default=asked) or asked

    @property
    def _usage(self) -> DurationUsage:
        return DurationUsage(seconds=round(self._progress.seconds, 3))

    def _logprobs(self, parts: Sequence[TranscribedPart]) -> list[LogprobObject] | None:
        if "logprobs" not in self._order.body.include:
            return None
        return [LogprobObject.of(token) for part in parts for token in part.transcript.logprobs]

    def _words(self) -> list[WordObject]:
        return [
            WordObject(
                word=word.text,
                start=round(word.start_s, 2),
                end=round(word.end_s, 2),
                probability=round(word.probability, 4),
            )
            for part in self._parts
            for word in shift_words(part)
        ]

    def _segments(self) -> list[TranscriptSegment]:
        return [segment for part in self._parts for segment in split_segments(part)]

    def _segment_objects(self) -> list[SegmentObject]:
        pairs = ((part, one) for part in self._parts for one in split_segments(part))
        return [
            SegmentObject(
                id=number,
                seek=round(part.start_s * 100),
                start=round(segment.start_s, 2),
                end=round(segment.end_s, 2),
                text=segment.text,
                tokens=segment.tokens,
                temperature=segment.temperature,
                avg_logprob=round(segment.avg_logprob, 4),
                compression_ratio=round(segment.compression_ratio, 4),
                no_speech_prob=round(segment.no_speech_prob, 4),
            )
            for number, (part, segment) in enumerate(pairs)
        ]

    async def send_progress(self, body: Body) -> None:
        """How far the recording has been read; clients ignore comments."""
        async with self._writing:
            await body.write(f": {self._progress.seconds:.0f} s read\n\n".encode())


class _SignsOfLife:
    """Sends a streamed transcription's progress while it has nothing else to send."""

    def __init__(self, response: TranscriptionResponse, body: Body) -> None:
        self._response, self._body = response, body
        self._is_streamed = response.media_type == SSE_MEDIA_TYPE
        self._quiet = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> _SignsOfLife:
        if self._is_streamed:
            self._task = asyncio.create_task(self._send(), name="transcription:progress")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def touch(self) -> None:
        """Something was sent just now."""
        self._quiet.set()

    async def _send(self) -> None:
        while True:
            self._quiet.clear()
            try:
                async with asyncio.timeout(_SIGN_OF_LIFE_S):
                    await self._quiet.wait()
            except TimeoutError:
                await self._response.send_progress(self._body)
