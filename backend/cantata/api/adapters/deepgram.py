"""Deepgram's /v1/speak: text in and sound out over a WebSocket, or one text over HTTP."""

from __future__ import annotations

import re
from itertools import count
from typing import Annotated

from fastapi import APIRouter, Query, WebSocket
from starlette.responses import Response

from cantata import __version__
from cantata.api.adapters.deepgram_messages import (
    CLIENT_MESSAGES,
    Clear,
    Cleared,
    Close,
    DeepgramError,
    DeepgramErrorBody,
    DeepgramSpeak,
    DeepgramSpeakBody,
    DeepgramWarning,
    Flush,
    Flushed,
    Metadata,
    SpeakQuery,
    SpeakSocketQuery,
)
from cantata.api.adapters.sentence_buffer import SentenceBuffer
from cantata.api.adapters.voices import ModelVoice, resolve_model_voice
from cantata.api.context import ApiContext, Context
from cantata.api.errors import HttpError, describe, respond
from cantata.api.http.bodies import CheckedRoute
from cantata.api.openapi import describe_errors, describe_sound
from cantata.api.sessions.connection import Channel
from cantata.api.sessions.socket import (
    SocketConnection,
    close_code,
    parse_query,
)
from cantata.api.speech.framing import AudioFraming
from cantata.api.speech.messages import (
    AudioDone,
    AudioStart,
    ErrorMessage,
    InputSpoken,
    parse_message,
)
from cantata.api.speech.outbox import AudioFrame, Item
from cantata.api.speech.response import SpeechResponse
from cantata.api.speech.utterance_queue import Mark
from cantata.api.speech.utterance_queue import Speak as SpeakJob
from cantata.api.speech.validated_request import ValidatedRequest
from cantata.api.speech.whole import WholeSpeech
from cantata.audio.formats import OutputFormat
from cantata.audio.sound_stream import SoundStream
from cantata.audio.telephone_formats import ALL_FORMATS, build_mono_output
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.request import check_text_length
from cantata.contract.service import SpeechModel

PREFIX = "/v1/speak"
IDLE_TIMEOUT_S = 3600.0
"""Clients keep a connection idle for their next turn, up to an hour."""

router = APIRouter(
    tags=["deepgram"], route_class=CheckedRoute, responses=describe_errors(DeepgramErrorBody)
)

_FOREIGN_VOICES = re.compile(r"aura[-\w]*", re.ASCII)
_CODE_OF_STATUS = {
    401: "INVALID_AUTH",
    403: "INSUFFICIENT_PERMISSIONS",
    404: "NOT_FOUND",
    413: "PAYLOAD_TOO_LARGE",
    429: "TOO_MANY_REQUESTS",
    500: "INTERNAL_SERVER_ERROR",
    503: "SERVICE_UNAVAILABLE",
}
_FORMATS = {
    ("linear16", "wav"): "wav",
    ("linear16", "none"): "pcm",
    ("mulaw", "wav"): "mulaw_wav",
    ("mulaw", "none"): "mulaw",
    ("alaw", "wav"): "alaw_wav",
    ("alaw", "none"): "alaw",
    ("mp3", "none"): "mp3",
    ("opus", "ogg"): "opus",
    ("flac", "none"): "flac",
    ("aac", "none"): "aac",
}
_CONTAINERS = {"linear16": "wav", "mulaw": "wav", "alaw": "wav", "opus": "ogg"}
_SAMPLE_RATES = {"linear16": 24_000, "flac": 24_000, "opus": 48_000, "mulaw": 8_000, "alaw": 8_000}
_COMPRESSED_SAMPLE_RATE = 22_050


@router.post(PREFIX, response_class=Response, responses=describe_sound(ALL_FORMATS))
async def speak(
    body: DeepgramSpeakBody, query: Annotated[SpeakQuery, Query()], context: Context
) -> Response:
    """Speak one text. See docs/protocol.md."""
    model_voice = await _find_model_voice(context, query.model)
    check_text_length(len(body.text), model_voice.model.max_input_characters)
    request = model_voice.request(body.text, query.speed)
    model = model_voice.model
    validated = ValidatedRequest(
        model, request, context.mark(_choose_output(model, query), model.name)
    )
    if query.sign:
        context.check_signable(validated.output)
        return WholeSpeech(context, validated, verify=False)
    framing = AudioFraming(validated.output.audio_format)
    return SpeechResponse(validated, framing, context.metrics, context.settings.stall_timeout_s)


@router.websocket(PREFIX)
async def speak_stream(socket: WebSocket, context: Context) -> None:
    """Serve one connection, or reject it with an HTTP error before it opens. See
    docs/protocol.md."""
    try:
        query = parse_query(SpeakSocketQuery, socket.query_params)
        model_voice = await _find_model_voice(context, query.model)
        connection = _SpeakConnection(socket, context, model_voice, query)
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))
        return
    await socket.accept(headers=[(b"dg-request-id", connection.name.encode())])
    await connection.run()


def build_error_body(error: HttpError, request_id: str) -> dict[str, str]:
    """An error over HTTP in Deepgram's format."""
    body = DeepgramErrorBody(
        err_code=_CODE_OF_STATUS.get(error.status, "Bad Request"),
        err_msg=error.detail.message,
        request_id=request_id,
    )
    return body.model_dump()


async def _find_model_voice(context: ApiContext, name: str) -> ModelVoice:
    """The voice: one of our voices or models, or the default voice for one of Deepgram's."""
    context.lifecycle.check()
    served = context.service.models.get(name)
    if served is not None:
        return await resolve_model_voice(context, served, None)
    return await resolve_model_voice(context, context.get_model(None), name, _FOREIGN_VOICES)


def _choose_output(model: SpeechModel, query: SpeakQuery) -> OutputFormat:
    encoding = query.encoding
    container = query.container or _CONTAINERS.get(encoding, "none")
    name = _FORMATS.get((encoding, container))
    if name is None:
        valid = ", ".join(one for codec, one in _FORMATS if codec == encoding)
        raise InvalidRequest(
            f"encoding {encoding} cannot be sent in the container {container!r}; valid: {valid}",
            "container",
        )
    rate = query.sample_rate or _SAMPLE_RATES.get(encoding, _COMPRESSED_SAMPLE_RATE)
    return build_mono_output(name, model.sample_rate, rate, query.bit_rate)


def to_deepgram_code(code: str | None) -> str:
    named = {"rate_limit_exceeded": "TOO_MANY_REQUESTS"}
    return named.get(code or "", (code or "internal_error").upper())


def make_error(code: str, message: str, request_id: str) -> DeepgramError:
    """An error over a WebSocket in Deepgram's format."""
    return DeepgramError(
        code=code, description=message, err_code=code, err_msg=message, request_id=request_id
    )


class _SpeakConnection(SocketConnection):
    """Text in, one order of utterances out."""

    def __init__(
        self,
        socket: WebSocket,
        context: ApiContext,
        model_voice: ModelVoice,
        query: SpeakSocketQuery,
    ) -> None:
        super().__init__(socket, context, "deepgram", IDLE_TIMEOUT_S)
        self._model_voice = model_voice
        model = model_voice.model
        name = _FORMATS[query.encoding, query.container]
        rate = query.sample_rate or _SAMPLE_RATES[query.encoding]
        self._speed = query.speed
        self._channel = _SpeakChannel(self, build_mono_output(name, model.sample_rate, rate))
        self._text = SentenceBuffer(self._channel, model.max_input_characters, self._build_job)
        self._answers = count()

    def begin(self) -> None:
        metadata = Metadata(
            request_id=self.name,
            model_name=self._model_voice.model.name,
            model_version=__version__,
            model_uuid=self._model_voice.voice.id,
        )
        self._channel.outbox.post(metadata)
        self.open(self._channel)

    def has_pending_text(self) -> bool:
        return self._text.unfinished

    async def handle_message(self, text: str) -> None:
        match parse_message(CLIENT_MESSAGES, ("Speak", "Flush", "Clear", "Close"), text):
            case DeepgramSpeak(text=more):
                self._text.add(more)
            case Flush():
                self._text.flush(Mark(str(next(self._answers))))
            case Clear():
                self._text.clear()
                self._channel.utterances.cancel()
                self._channel.outbox.post(Cleared(sequence_id=next(self._answers)))
            case Close():
                self.stop()

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

    def _build_job(self, text: str) -> SpeakJob:
        return SpeakJob(self._model_voice.model, self._model_voice.request(text, self._speed), None)


class _SpeakChannel(Channel):
    """Sound as binary messages, and the outcome of each text."""

    def __init__(self, connection: SocketConnection, output: OutputFormat) -> None:
        super().__init__(connection)
        self._socket = connection
        self._sound = SoundStream(output)

    async def write(self, item: Item) -> None:
        match item:
            case AudioFrame():
                await self._send_sound(self._sound.feed(item.sound))
            case InputSpoken():
                await self._send_sound(self._sound.end())
                await self._socket.send(Flushed(sequence_id=int(item.context_id or 0)))
            case ErrorMessage():
                code = to_deepgram_code(item.error.code)
                await self._socket.send(make_error(code, item.error.message, self._socket.name))
            case AudioStart() | AudioDone():
                pass
            case Cleared():
                self._sound.drop()
                await self._socket.send(item)
            case _:
                await self._socket.send(item)

    def free(self) -> None:
        self._sound.drop()

    async def _send_sound(self, data: bytes) -> None:
        if data:
            await self._socket.send(data)
