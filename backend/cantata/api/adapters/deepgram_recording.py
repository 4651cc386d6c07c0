"""Deepgram's POST /v1/listen: a recording in, its transcript out."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import struct
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from cantata.api.adapters.deepgram_listen_messages import (
    ListenAnswer,
    ListenQuery,
    ListenUrlBody,
    RecordingMetadata,
)
from cantata.api.adapters.deepgram_transcripts import make_results, model_info
from cantata.api.context import ApiContext
from cantata.api.errors import explain_validation
from cantata.api.http.streamed_response import Body, ClientStalled, StreamedResponse
from cantata.api.transcription.body import SentFile, TranscriptionBody
from cantata.api.transcription.parts import build_request, transcribe_file
from cantata.contract.data.errors import InvalidAudio, InvalidRequest, PayloadTooLarge
from cantata.contract.transcription_service import TranscriptionModel
from cantata.speech_input.recordings import RecordingProgress

logger = logging.getLogger(__name__)

_IN_MEMORY_BYTES = 1 << 20
"""Of a recording; a longer one is kept on disk."""
_MAX_JSON_BYTES = 64 << 10
_WAV_CODES = {"linear16": (1, 2), "alaw": (6, 1), "mulaw": (7, 1)}
"""Format of a WAV file, and bytes per sample."""
_WAV_HEAD = struct.Struct("<4sI4s4sIHHIIHH4sI")


class SentRecording:
    """A recording as it was uploaded; close it. `query`: says whether it is bare samples."""

    def __init__(self, query: ListenQuery) -> None:
        self.file: BinaryIO = cast(BinaryIO, SpooledTemporaryFile(_IN_MEMORY_BYTES))  # noqa: SIM115
        self._query = query
        self._hash = hashlib.sha256()
        self._size = 0
        self._is_bare: bool | None = None
        """None: nothing has come yet."""

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def add(self, data: bytes) -> None:
        """Write more of it; blocks."""
        if self._is_bare is None:
            self._is_bare = self._query.encoding is not None and data[:4] != b"RIFF"
            if self._is_bare:
                self.file.write(bytes(_WAV_HEAD.size))
        self._hash.update(data)
        self._size += len(data)
        self.file.write(data)

    def finish(self) -> None:
        """Nothing follows; what was bare samples is then a WAV file. Raises InvalidAudio: there is
        nothing."""
        if not self._size:
            raise InvalidAudio("the body contains no sound: it has 0 bytes")
        self.file.seek(0)
        if self._is_bare:
            self.file.write(self._make_head())
            self.file.seek(0)

    def close(self) -> None:
        """Delete it."""
        self.file.close()

    def _make_head(self) -> bytes:
        query = self._query
        assert query.encoding is not None
        assert query.sample_rate is not None
        code, width = _WAV_CODES[query.encoding]
        moment = width * query.channels
        return _WAV_HEAD.pack(
            *(b"RIFF", min(self._size + _WAV_HEAD.size - 8, 2**32 - 1), b"WAVE", b"fmt ", 16),
            *(code, query.channels, query.sample_rate, query.sample_rate * moment, moment),
            *(8 * width, b"data", min(self._size, 2**32 - 1)),
        )


async def receive_recording(
    request: Request, context: ApiContext, query: ListenQuery
) -> SentRecording:
    """The recording in a request's body, or behind the URL in it.

    Raises:
        InvalidAudio: there is none.
        InvalidRequest: the body is cut, or is JSON without a URL.
        PayloadTooLarge: the JSON, or the file behind the URL, is too large.
    """
    sent = SentRecording(query)
    try:
        if request.headers.get("content-type", "").lower().startswith("application/json"):
            body = await _read_json(request)
            data = await context.media.load_sound(body.url, "url")
            await asyncio.to_thread(sent.add, data)
        else:
            async for chunk in request.stream():
                if chunk:
                    await asyncio.to_thread(sent.add, chunk)
        await asyncio.to_thread(sent.finish)
    except ClientDisconnect:
        sent.close()
        raise InvalidRequest("the body is incomplete: the client has disconnected") from None
    except BaseException:
        sent.close()
        raise
    return sent


async def _read_json(request: Request) -> ListenUrlBody:
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MAX_JSON_BYTES:
            raise PayloadTooLarge(f"a body of JSON may have {_MAX_JSON_BYTES} bytes")
    try:
        return ListenUrlBody.model_validate_json(data)
    except ValidationError as error:
        problems = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise explain_validation(problems) from None


class RecordingResponse(StreamedResponse):
    """The transcript of one recording. A client that leaves ends the work. `sent`: the recording;
    it is closed at the end."""

    def __init__(
        self,
        context: ApiContext,
        model: TranscriptionModel,
        query: ListenQuery,
        sent: SentRecording,
    ) -> None:
        super().__init__("application/json", {}, context.settings.stall_timeout_s)
        self._context = context
        self._model, self._query, self._sent = model, query, sent
        self._progress = RecordingProgress()

    async def stream(self, request_id: str, body: Body) -> None:
        metrics, name = self._context.metrics.transcriptions, self._model.name
        try:
            with metrics.track(name, lambda: self._progress.seconds):
                answer = await self._recognize(request_id)
                written = await asyncio.to_thread(answer.model_dump_json)
                await body.write_in_parts(written.encode())
                await body.end()
        except ClientStalled:
            logger.info("the client stopped reading; its transcription is aborted")
        finally:
            self._sent.close()

    async def _recognize(self, request_id: str) -> ListenAnswer:
        query, name = self._query, self._model.name
        options = TranscriptionBody(language=query.wanted_language, prompt=query.bias)
        parts = transcribe_file(
            self._context.recordings,
            self._model,
            SentFile(self._sent.file, "body"),
            options,
            build_request(options, translate=False),
            self._progress,
        )
        said = [part async for part in parts]
        metadata = RecordingMetadata(
            request_id=request_id,
            sha256=self._sent.sha256,
            created=datetime.now(UTC).isoformat(),
            duration=round(self._progress.seconds, 3),
            models=[name],
            model_info={name: model_info(name)},
        )
        return ListenAnswer(
            metadata=metadata, results=await asyncio.to_thread(make_results, said, query)
        )
