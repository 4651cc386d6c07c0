"""ElevenLabs' WebSockets: stream-input speaks one text, multi-stream-input several contexts."""

from __future__ import annotations

import base64
from typing import TypeVar

from fastapi import APIRouter, WebSocket
from pydantic import BaseModel, ValidationError

from cantata.api.adapters.elevenlabs import PREFIX, find_model_voice
from cantata.api.adapters.elevenlabs_messages import (
    CharacterClock,
    ContextText,
    ElevenLabsAudio,
    SocketError,
    StreamText,
    SynthesisSocketQuery,
    TimedCharacter,
    VoiceSettings,
    build_socket_alignment,
)
from cantata.api.adapters.sentence_buffer import SentenceBuffer
from cantata.api.adapters.voices import ModelVoice
from cantata.api.context import ApiContext, Context
from cantata.api.errors import describe, explain_validation, respond
from cantata.api.sessions.connection import Channel
from cantata.api.sessions.socket import SocketConnection, close_code, parse_query
from cantata.api.speech.messages import (
    AudioDone,
    AudioStart,
    AudioTimestamps,
    ErrorMessage,
    InputSpoken,
)
from cantata.api.speech.outbox import AudioFrame, Item
from cantata.api.speech.utterance_queue import Mark, Speak
from cantata.audio.sound_stream import SoundStream
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    Overloaded,
    ProtocolViolation,
    RequestFailed,
)

MAX_CONTEXTS = 16
"""Most contexts of one connection, including closed ones that are still being spoken."""

router = APIRouter()

ClientMessage = TypeVar("ClientMessage", bound=BaseModel)


@router.websocket(PREFIX + "/{voice_id}/stream-input")
async def stream_input(socket: WebSocket, voice_id: str, context: Context) -> None:
    """Speak one text while it is written. See docs/protocol.md."""
    await _serve(socket, voice_id, context, _SingleConnection)


@router.websocket(PREFIX + "/{voice_id}/multi-stream-input")
async def multi_stream_input(socket: WebSocket, voice_id: str, context: Context) -> None:
    """Several contexts, each a text of its own. See docs/protocol.md."""
    await _serve(socket, voice_id, context, _MultiConnection)


async def _serve(
    socket: WebSocket, voice_id: str, context: ApiContext, kind: type[_ElevenLabsConnection]
) -> None:
    try:
        query = parse_query(SynthesisSocketQuery, socket.query_params)
        model_voice = await find_model_voice(context, query.model_id, voice_id)
        connection = kind(socket, context, model_voice, query)
    except CantataError as error:
        await socket.send_denial_response(respond(socket, describe(error)))
        return
    await socket.accept()
    await connection.run()


class _ElevenLabsConnection(SocketConnection):
    """Shared by both."""

    def __init__(
        self,
        socket: WebSocket,
        context: ApiContext,
        model_voice: ModelVoice,
        query: SynthesisSocketQuery,
    ) -> None:
        super().__init__(socket, context, "elevenlabs", query.inactivity_timeout)
        self.model_voice = model_voice
        self.model = model_voice.model
        self.output = query.output(model_voice.model)
        self.query = query

    async def close_with_error(self, error: CantataError | None) -> None:
        detail, code = describe(error or RuntimeError()).detail, close_code(error)
        await self.send(
            SocketError(error=detail.code or detail.type, message=detail.message, code=code)
        )
        await self.close_socket(code)


class _SingleConnection(_ElevenLabsConnection):
    """stream-input."""

    def begin(self) -> None:
        self._context = _Context(self, None)
        self._started = False
        self.open(self._context)

    def has_pending_text(self) -> bool:
        return self._started

    async def handle_message(self, text: str) -> None:
        message = _parse(StreamText, text)
        self._context.configure(message.voice_settings)
        self._context.text.add(message.text)
        self._started = self._started or bool(message.text.strip())
        if message.flush or not message.text:
            self._context.flush()
        if not message.text:
            self.close()

    def report_error(self, error: CantataError) -> None:
        self._context.outbox.post(_build_socket_error(error, None))


class _MultiConnection(_ElevenLabsConnection):
    """multi-stream-input."""

    def begin(self) -> None:
        self._contexts: dict[str | None, _Context] = {}
        self._closed: dict[str | None, _Context] = {}
        """Closed contexts that are still speaking."""
        self._answers = _Answers(self)
        self.open(self._answers)

    def has_pending_text(self) -> bool:
        return bool(self._contexts)

    async def handle_message(self, text: str) -> None:
        message = _parse(ContextText, text)
        if message.close_socket:
            for context_id in [*self._contexts]:
                self._close(context_id)
            self.close()
        elif message.close_context:
            self._close(message.context_id)
        elif message.text or message.flush:
            self._speak(message)

    def report_error(self, error: CantataError) -> None:
        self._answers.outbox.post(_build_socket_error(error, None))

    def _speak(self, message: ContextText) -> None:
        context = self._contexts.get(message.context_id)
        try:
            if context is None:
                context = self._open(message.context_id)
            context.configure(message.voice_settings)
            if message.text:
                context.text.add(message.text)
            if message.flush:
                context.flush()
        except (InvalidRequest, Overloaded) as error:
            # Includes the context's name, by which clients match it to a text.
            self._answers.outbox.post(_build_socket_error(error, message.context_id))

    def _open(self, context_id: str | None) -> _Context:
        self.check_not_draining()
        if len(self._channels) > MAX_CONTEXTS:
            raise Overloaded(f"this connection has {MAX_CONTEXTS} contexts; close one of them")
        context = _Context(self, context_id)
        self._contexts[context_id] = context
        self.open(context)
        return context

    def _close(self, context_id: str | None) -> None:
        """Flushed text is still spoken. Closing a context again stops that too."""
        context = self._contexts.pop(context_id, None)
        if context is None:
            closed = self._closed.get(context_id)
            if closed is not None:
                closed.utterances.cancel()
            return
        if context.unflushed:
            context.utterances.cancel()
        context.text.clear()
        context.utterances.finish()
        self._closed[context_id] = context

    def forget(self, context: _Context) -> None:
        """Drop a context that has finished speaking."""
        if self._closed.get(context.context_id) is context:
            del self._closed[context.context_id]


class _Answers(Channel):
    """Sends the answers to messages without a context, or with one that could not be opened."""

    def __init__(self, connection: _ElevenLabsConnection) -> None:
        super().__init__(connection)
        self._socket = connection

    async def write(self, item: Item) -> None:
        assert isinstance(item, SocketError)
        await self._socket.send(item)


class _Context(Channel):
    """A context: one text, whose sound is sent in base64 with the times of its characters."""

    def __init__(self, connection: _ElevenLabsConnection, context_id: str | None) -> None:
        super().__init__(connection)
        self.context_id = context_id
        self.text = SentenceBuffer(self, connection.model.max_input_characters, self._build_job)
        self.unflushed = False
        """Whether anything sent after the last flush is being spoken or waits."""
        self._socket = connection
        self._sound = SoundStream(connection.output)
        self._speed = 1.0
        self._texts: dict[str, str] = {}
        """Texts of the utterances that wait, by their ids."""
        self._clock = CharacterClock("")
        self._sound_s = 0.0
        """Seconds written."""
        self._utterance_at_s = 0.0
        self._told_s = 0.0
        """The end of the character times sent so far."""

    def configure(self, settings: VoiceSettings | None) -> None:
        """Take the settings of a message, for the text from here on."""
        if settings is not None and settings.speed is not None:
            self._speed = settings.speed

    def flush(self) -> None:
        """Speak all that was sent. Raises Overloaded: too much waits."""
        self.text.flush(Mark(self.context_id))
        self.unflushed = False

    async def write(self, item: Item) -> None:
        match item:
            case AudioFrame():
                self._sound_s += item.samples / self._socket.model.sample_rate
                await self._send_chunk(self._sound.feed(item.sound), [])
            case AudioTimestamps():
                words = ((w.text_start, w.text_end, w.start, w.end) for w in item.words)
                await self._send_chunk(b"", self._clock.take_until(words))
            case AudioStart():
                self._utterance_at_s = self._sound_s
                text = self._texts.pop(item.utterance_id)
                self._clock = CharacterClock(text, self._sound_s)
            case AudioDone(cancelled=False):
                await self._send_chunk(
                    b"", self._clock.take_rest(self._sound_s - self._utterance_at_s)
                )
            case InputSpoken():
                # Ending a compressed sound adds a few milliseconds: not between two sentences.
                if not self.busy:
                    await self._send_chunk(self._sound.end(), [])
            case ErrorMessage():
                self._texts.pop(item.utterance_id or "", None)
                await self._fail(item)
            case SocketError():
                await self._socket.send(item)

    async def end(self) -> None:
        await self._send_chunk(self._sound.end(), [])
        final = ElevenLabsAudio(audio=None, is_final=True, context_id=self.context_id)
        await self._socket.send(final)

    def free(self) -> None:
        self._sound.drop()
        if isinstance(self._socket, _MultiConnection):
            self._socket.forget(self)

    async def _send_chunk(self, data: bytes, characters: list[TimedCharacter]) -> None:
        if not data and not characters:
            return
        # Times count from where the last ones ended, and clients add them up. Those that ask for
        # `sync_alignment` (LiveKit) do not: for them they count from the context's first sample.
        since_s = 0.0 if self._socket.query.sync_alignment else self._told_s
        alignment = build_socket_alignment(characters, since_s) if characters else None
        self._told_s = characters[-1].end_s if characters else self._told_s
        await self._socket.send(
            ElevenLabsAudio(
                audio=base64.b64encode(data).decode("ascii"),
                alignment=alignment,
                normalized_alignment=alignment,
                context_id=self.context_id,
            )
        )

    async def _fail(self, failed: ErrorMessage) -> None:
        """Other contexts continue; a connection of one text is finished."""
        detail = failed.error
        if isinstance(self._socket, _SingleConnection):
            raise RequestFailed(detail.message)
        await self._socket.send(
            SocketError(
                error=detail.code or detail.type,
                message=detail.message,
                code=close_code(None),
                context_id=self.context_id,
            )
        )

    def _build_job(self, text: str) -> Speak:
        request = self._socket.model_voice.request(text, self._speed, self._socket.query.seed)
        job = Speak(self._socket.model, request, self.context_id, timestamps=True)
        self._texts[job.utterance_id] = text
        self.unflushed = True
        return job


def _parse(kind: type[ClientMessage], text: str) -> ClientMessage:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        if problem["type"] == "json_invalid" or not problem["loc"]:
            raise ProtocolViolation("a message must be a JSON object") from None
        raise explain_validation([problem]) from None


def _build_socket_error(error: CantataError, context_id: str | None) -> SocketError:
    return SocketError(
        error=error.code, message=error.message, code=close_code(error), context_id=context_id
    )
