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
from cantata.api.speech.framing import SSE_MEDIA_TYPE, format_sse_event
from cantata.api.transcription.answers import (
    LogprobObject,
    TranscriptionAnswer,
    TranscriptTextDelta,
    TranscriptTextDone,
    VerboseTranscription,
)
from cantata.api.transcription.body import SentFile, TranscriptionBody, close_files
from cantata.api.transcription.parts import (
    TranscribedPart,
    build_request,
    transcribe_file,
)
from cantata.api.transcription.result import FinishedTranscription
from cantata.contract.data.errors import CantataError
from cantata.contract.data.languages import choose_separator
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
class ValidatedTranscription:
    model: TranscriptionModel
    body: TranscriptionBody
    sent: SentFile
    form: FormData
    """Has the file; it is closed at the end."""
    translate: bool

    @property
    def media_type(self) -> str:
        return SSE_MEDIA_TYPE if self.body.stream else _MEDIA_TYPES[self.body.response_format]


class TranscriptionResponse(StreamedResponse):
    """The transcript of one recording. A client that leaves ends the work."""

    def __init__(self, context: ApiContext, validated: ValidatedTranscription) -> None:
        super().__init__(validated.media_type, {}, context.settings.stall_timeout_s)
        self._metrics = context.metrics.transcriptions
        self._reader = context.recordings
        self._validated = validated
        self._progress = RecordingProgress()
        self._parts: list[TranscribedPart] = []
        self._writing = asyncio.Lock()

    async def stream(self, request_id: str, body: Body) -> None:
        """Recognize the recording, and write what the client asked for."""
        validated = self._validated
        try:
            with self._metrics.track(validated.model.name, self._count_progress_seconds):
                if validated.body.stream:
                    await self._send_events(body)
                else:
                    await self._recognize(body)
                    await body.write_in_parts(
                        await asyncio.to_thread(self._write, self._build_result())
                    )
                    await body.end()
        except ClientStalled:
            logger.info("the client stopped reading; its transcription is aborted")
        finally:
            close_files(validated.form)

    def _count_progress_seconds(self) -> float:
        return self._progress.seconds

    async def _send_events(self, body: Body) -> None:
        try:
            await self._recognize(body)
            await body.write_in_parts(
                format_sse_event(await asyncio.to_thread(self._finish, self._build_result()))
            )
            await body.end(b"data: [DONE]\n\n")
        except CantataError as error:
            if not body.started:
                raise
            logger.warning("a transcription failed while it was streamed: %s", error)
            await body.end(format_sse_event(ErrorBody(error=describe(error).detail), "error"))

    async def _recognize(self, body: Body) -> None:
        validated = self._validated
        request = build_request(validated.body, translate=validated.translate)
        parts = transcribe_file(
            self._reader, validated.model, validated.sent, validated.body, request, self._progress
        )
        async with aclosing(parts), _SignsOfLife(self, body) as signs:
            async for part in parts:
                self._parts.append(part)
                if validated.body.stream:
                    await self._send_delta(body, part)
                    signs.touch()

    async def _send_delta(self, body: Body, part: TranscribedPart) -> None:
        transcript = part.transcript
        if not transcript.text:
            return
        earlier = (one.transcript.text for one in reversed(self._parts[:-1]))
        before = next(filter(None, earlier), "")
        delta = TranscriptTextDelta(
            delta=choose_separator(before, transcript.text, part.written_in) + transcript.text,
            start=round(part.start_s, 3),
            end=round(part.start_s + transcript.seconds, 3),
            logprobs=self._list_logprobs([part]),
        )
        async with self._writing:
            await body.write_in_parts(format_sse_event(delta))

    def _write(self, result: FinishedTranscription) -> bytes:
        form = self._validated.body.response_format
        if form == "json":
            answer = TranscriptionAnswer(
                text=result.text, logprobs=self._list_logprobs(result.parts), usage=result.usage
            )
            return answer.model_dump_json(exclude_none=True).encode()
        if form == "verbose_json":
            return self._build_verbose(result).model_dump_json(exclude_none=True).encode()
        return result.write(form).encode()

    def _finish(self, result: FinishedTranscription) -> TranscriptTextDone:
        verbose = self._build_verbose(result)
        is_verbose = self._validated.body.response_format == "verbose_json"
        return TranscriptTextDone(
            text=verbose.text,
            logprobs=self._list_logprobs(result.parts),
            language=verbose.language,
            words=verbose.words if is_verbose else None,
            segments=verbose.segments if is_verbose else None,
            usage=verbose.usage,
        )

    def _build_verbose(self, result: FinishedTranscription) -> VerboseTranscription:
        """Segments are the default; words are there if the client asked for them."""
        asked = self._validated.body.timestamp_granularities or ["segment"]
        return result.verbose(words="word" in asked, segments="segment" in asked)

    def _list_logprobs(self, parts: Sequence[TranscribedPart]) -> list[LogprobObject] | None:
        if "logprobs" not in self._validated.body.include:
            return None
        return [LogprobObject.of(token) for part in parts for token in part.transcript.logprobs]

    def _build_result(self) -> FinishedTranscription:
        validated = self._validated
        return FinishedTranscription(
            tuple(self._parts),
            self._progress.seconds,
            validated.body.only_language,
            translate=validated.translate,
        )

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
