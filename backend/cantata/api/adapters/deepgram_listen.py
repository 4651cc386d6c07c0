"""Deepgram's /v1/listen: sound in and words out, over a WebSocket while somebody speaks, or of a
recording over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import re
from datetime import UTC, datetime
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, WebSocket
from starlette.requests import Request
from starlette.responses import Response

from cantata.api.adapters.arriving_sound import ArrivingFile, ArrivingSamples, ArrivingSound
from cantata.api.adapters.deepgram import make_error, to_deepgram_code
from cantata.api.adapters.deepgram_listen_messages import (
    LISTEN_CLIENT_MESSAGES,
    CloseStream,
    Finalize,
    ListenAnswer,
    ListenChannel,
    ListenMetadata,
    ListenQuery,
    ListenResults,
    ListenSocketQuery,
    ListenUrlBody,
    ResultsMetadata,
    SpeechStartedMessage,
    UtteranceEndMessage,
)
from cantata.api.adapters.deepgram_messages import DeepgramErrorBody, DeepgramWarning
from cantata.api.adapters.deepgram_recording import RecordingResponse, receive_recording
from cantata.api.adapters.deepgram_transcripts import make_alternative, model_info
from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe, respond
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import describe_errors
from cantata.api.sessions.connection import Channel
from cantata.api.sessions.socket import SocketConnection, close_code, parse_query
from cantata.api.speech.messages import parse_message
from cantata.api.speech.outbox import AudioFrame, Item
from cantata.api.transcription.live import LiveTranscription
from cantata.api.transcription.live_events import (
    LiveEvent,
    LiveFailure,
    LiveOptions,
    LiveTranscript,
    SpeechHeard,
    WordsEnded,
)
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.languages import has_language
from cantata.contract.data.transcripts import TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.metrics import EndReason
from cantata.speech_input.sound import Encoding
from cantata.speech_input.vad import SileroJudge

AnyQuery = ListenQuery | ListenSocketQuery
Q = TypeVar("Q", ListenQuery, ListenSocketQuery)

PREFIX = "/v1/listen"
IDLE_TIMEOUT_S = 3600.0
"""Clients keep a connection open for a whole conversation."""

router = APIRouter(
    tags=["deepgram"], route_class=CheckedRoute, responses=describe_errors(DeepgramErrorBody)
)

_FOREIGN_MODELS = re.compile(
    r"(\d-)?(nova|enhanced|base|flux|whisper-|general|meeting|phonecall|finance|video)[-\w.:]*",
    re.ASCII,
)
_ENCODINGS: dict[str, Encoding] = {"linear16": "pcm", "mulaw": "mulaw", "alaw": "alaw"}
_TELEPHONE_RATE = 8000
_CONTENT = {
    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
    "application/json": {"schema": ListenUrlBody.model_json_schema()},
}


@router.post(
    PREFIX,
    response_model=ListenAnswer,
    openapi_extra={"requestBody": {"required": True, "content": _CONTENT}},
)
async def listen(
    request: Request, query: Annotated[ListenQuery, Query()], context: Context
) -> Response:
    """Write down what is said in a recording. See docs/protocol.md."""
    model = _find_model(context, query)
    query = _check_samples(query)
    sent = await receive_recording(request, context, query)
    return RecordingResponse(context, model, query, sent)


@router.websocket(PREFIX)
async def listen_live(socket: WebSocket, context: Context) -> None:
    """Serve one connection, or reject it with an HTTP error before it opens. See
    docs/protocol.md."""
    try:
        query = parse_query(ListenSocketQuery, socket.query_params)
        model = _find_model(context, query)
        query = _check_samples(query)
        model.check_room()
        await context.cascade.prepare()
        connection = _ListenConnection(socket, context, model, query)
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))
        return
    await socket.accept(headers=[(b"dg-request-id", connection.name.encode())])
    await connection.run()


def _find_model(context: ApiContext, query: AnyQuery) -> TranscriptionModel:
    """Finds the model: one of ours by name; for a name of Deepgram's, the first that knows the
    language."""
    name = context.resolve_alias(query.model)
    is_ours = name in context.service.transcription_models
    is_foreign = not is_ours and _FOREIGN_MODELS.fullmatch(query.model)
    model = context.get_transcription_model(None if is_foreign else query.model)
    language = query.wanted_language
    if language is not None and model.languages and not has_language(model.languages, language):
        valid = ", ".join((*model.languages, "multi"))
        raise InvalidRequest(f"language {language!r}: valid: {valid}", "language")
    return model


def _check_samples(query: Q) -> Q:
    """The query with its sample rate, if it needs one. Raises InvalidRequest: it asks for what this
    server does not do."""
    if query.callback is not None:
        raise InvalidRequest("callback: answers come with the request; leave it out", "callback")
    if query.multichannel and query.channels > 1:
        raise InvalidRequest(
            "multichannel: channels are not told apart; valid: false", "multichannel"
        )
    if query.encoding in (None, "linear16"):
        if query.encoding is not None and query.sample_rate is None:
            raise InvalidRequest("sample_rate is required with encoding linear16", "sample_rate")
        return query
    if query.channels > 1:
        raise InvalidRequest(f"channels: {query.encoding} has one channel here", "channels")
    rate = query.sample_rate or _TELEPHONE_RATE
    return query.model_copy(update={"sample_rate": rate})


class _ListenConnection(SocketConnection):
    """Sound in, transcripts out. `socket`: not accepted yet."""

    def __init__(
        self,
        socket: WebSocket,
        context: ApiContext,
        model: TranscriptionModel,
        query: ListenSocketQuery,
    ) -> None:
        super().__init__(socket, context, "deepgram-listen", IDLE_TIMEOUT_S)
        self._model, self._query = model, query
        self._channel = _ListenChannel(self)
        self._created = datetime.now(UTC).isoformat()
        self._hash = hashlib.sha256()
        request = TranscriptionRequest(
            language=query.wanted_language, prompt=query.bias, timestamps=model.has_timestamps
        )
        end_ms = query.utterance_end_ms
        options = LiveOptions(
            request,
            query.endpointing_s,
            None if end_ms is None else end_ms / 1000,
            partials=query.interim_results,
        )
        transcriber = context.cascade.transcriber(model)
        self._live = LiveTranscription(transcriber, SileroJudge(), options, self._report)
        self._sound = self._make_sound()
        self._work: asyncio.Task[None] | None = None
        self._is_ended = False
        """The client sends no more sound."""

    def begin(self) -> None:
        self.open(self._channel)
        assert self._group is not None
        self._work = self._group.create_task(self._listen(), name=f"{self.name}:listen")

    def has_pending_text(self) -> bool:
        return self._live.is_busy

    async def handle_message(self, text: str) -> None:
        match parse_message(LISTEN_CLIENT_MESSAGES, ("KeepAlive", "Finalize", "CloseStream"), text):
            case Finalize():
                self._live.flush()
            case CloseStream():
                await self._end_sound()

    async def handle_binary(self, data: bytes) -> None:
        if not data:
            # Older clients end a stream so.
            await self._end_sound()
        elif not self._is_ended:
            self._hash.update(data)
            await self._sound.feed(data)

    def report_error(self, error: CantataError) -> None:
        code = to_deepgram_code(error.code)
        warning = DeepgramWarning(
            code=code, description=error.message, warn_code=code, warn_msg=error.message
        )
        self._channel.outbox.post(warning)

    async def close_with_error(self, error: CantataError | None) -> None:
        detail = describe(error or RuntimeError()).detail
        await self.send(make_error(to_deepgram_code(detail.code), detail.message, self.name))
        await self.close_socket(close_code(error))

    def close(self) -> None:
        self._free()
        super().close()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        self._free()
        super().stop(reason)

    def _make_sound(self) -> ArrivingSound:
        query = self._query
        if query.encoding is None:
            return ArrivingFile(self._live.feed, self.context.recordings, "the sound")
        assert query.sample_rate is not None
        encoding = _ENCODINGS[query.encoding]
        return ArrivingSamples(encoding, query.sample_rate, query.channels, self._live.feed)

    async def _end_sound(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            await self._sound.end()

    async def _listen(self) -> None:
        """Take sound and report words, to the end."""
        track = self.context.metrics.transcriptions.track
        with track(self._model.name, lambda: self._live.seconds):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hear(), name=f"{self.name}:hear")
                await self._live.run(self.on_message_handled)
        name = self._model.name
        metadata = ListenMetadata(
            request_id=self.name,
            sha256=self._hash.hexdigest(),
            created=self._created,
            duration=round(self._live.seconds, 3),
            models=[name],
            model_info={name: model_info(name)},
        )
        self._channel.outbox.post(metadata)
        self._work = None
        self.close()

    async def _hear(self) -> None:
        await self._sound.run()
        self._live.end()

    def _free(self) -> None:
        self._live.close()
        if self._work is not None:
            self._work.cancel()
            self._work = None

    def _report(self, event: LiveEvent) -> None:
        post, name = self._channel.outbox.post, self._model.name
        match event:
            case SpeechHeard() if self._query.vad_events:
                post(SpeechStartedMessage(timestamp=round(event.at_s, 3)))
            case WordsEnded():
                post(UtteranceEndMessage(last_word_end=round(event.last_word_end_s, 3)))
            case LiveFailure(error):
                post(make_error(to_deepgram_code(error.code), error.message, self.name))
            case LiveTranscript(transcript):
                said = make_alternative(
                    transcript,
                    event.start_s,
                    is_formatted=self._query.is_formatted,
                    names_language=self._query.wanted_language is None,
                )
                about = ResultsMetadata(
                    request_id=self.name, model_info=model_info(name), model_uuid=name
                )
                results = ListenResults(
                    start=round(event.start_s, 3),
                    duration=round(transcript.seconds, 3),
                    is_final=event.is_final,
                    speech_final=event.ends_utterance,
                    from_finalize=event.answers_flush,
                    channel=ListenChannel(alternatives=[said]),
                    metadata=about,
                )
                post(results)


class _ListenChannel(Channel):
    """Messages alone."""

    def __init__(self, connection: _ListenConnection) -> None:
        super().__init__(connection)
        self._socket = connection

    async def write(self, item: Item) -> None:
        assert not isinstance(item, AudioFrame)
        await self._socket.send(item)
