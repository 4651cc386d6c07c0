"""One client of /v1/realtime: its socket, the dispatch of its events, and what it gets."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any

from pydantic import BaseModel

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.realtime.active_responses import CLIENT_CANCELLED
from cantata.api.realtime.beta import flatten_transcription_session, to_beta
from cantata.api.realtime.client_events import (
    CLIENT_EVENTS,
    CLIENT_TYPES,
    AnyClientEvent,
    AudioAppend,
    AudioClear,
    AudioCommit,
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    OutputAudioClear,
    ResponseCancel,
    ResponseCreate,
    SessionUpdate,
    TranscriptionSessionUpdate,
)
from cantata.api.realtime.conversation import Conversation
from cantata.api.realtime.model_choice import ModelChoice
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.refusals import SessionExpired
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.sent_items import decode_sound
from cantata.api.realtime.server_events import (
    BufferEvent,
    ErrorEvent,
    ItemRetrieved,
    RealtimeErrorBody,
    ResumeObject,
    ServerEvent,
    SessionEvent,
    new_id,
)
from cantata.api.realtime.session_context import SessionContext
from cantata.api.realtime.session_handler import SessionHandler
from cantata.api.realtime.session_object import SessionIdentity, build_session_object
from cantata.api.realtime.session_settings import make_settings
from cantata.api.sessions.connection import IdleTimeout
from cantata.api.sessions.socket import NORMAL, MessageSocket, SocketConnection, close_code
from cantata.api.speech.messages import parse_message
from cantata.contract.data.errors import CantataError, ProtocolViolation
from cantata.metrics import EndReason

_LARGE = 1 << 20
"""Messages with more characters are parsed in a worker thread."""


MakeOutput = Callable[[SocketConnection, int], OutputAudio]
"""Makes the output of a connection, for a model's sound of this rate in Hz."""


class RealtimeConnection(SocketConnection):
    """One session: over an accepted WebSocket, or over what behaves like one.

    Args:
        beta: send events in the names of the API's beta.
        make_output: makes what takes the answers' sound.
        resume: how the client can come back; None: it cannot.
    """

    def __init__(
        self,
        socket: MessageSocket,
        context: ApiContext,
        choice: ModelChoice,
        *,
        beta: bool = False,
        make_output: MakeOutput = OutputAudio,
        resume: ResumeObject | None = None,
    ) -> None:
        limits = context.settings.realtime
        super().__init__(socket, context, "realtime", limits.idle_timeout_s)
        self._beta = beta
        self._resume = resume
        self._identity = SessionIdentity(
            new_id("sess"), choice.name, int(time.time() + limits.max_session_s)
        )
        self._expiry: asyncio.TimerHandle | None = None
        self._expired = False
        self._conversation = Conversation(limits.max_items, context.media.limits.max_audio_s)
        self._output_audio = make_output(self, choice.sample_rate)
        self._responder = choice.make_responder(context, self._output_audio)
        self.handler = SessionHandler(
            SessionContext(
                context,
                self._responder,
                self._output_audio,
                self._conversation,
                self.emit,
                self.report_error,
                self._spawn,
                self._on_response_done,
            ),
            make_settings(speaks=self._responder.speaks, answers=choice.answers),
        )

    async def configure(self, session: dict[str, Any]) -> None:
        """Change settings, before the session begins or later.

        Errors are those of `SessionHandler.update`.
        """
        await self.handler.update(session)

    def begin(self) -> None:
        self.open(self._output_audio)
        limit_s = self.context.settings.realtime.max_session_s
        self._expiry = asyncio.get_running_loop().call_later(limit_s, self._expire)
        created = SessionEvent(type="session.created", session=self.describe(), resume=self._resume)
        self.emit(created)

    def has_pending_text(self) -> bool:
        return self.handler.responses.is_busy

    async def handle_message(self, text: str) -> None:
        event_id = None
        try:
            event = await parse_event(text)
            event_id = event.event_id
            await self.handle_event(event)
        except CantataError as error:
            self.emit(make_error_event(error, event_id or find_event_id(text)))
        # A client may send many events at once: the writer must have its turn between them.
        await asyncio.sleep(0)

    async def send(self, message: BaseModel | bytes) -> None:
        if self._beta and isinstance(message, ServerEvent):
            event = to_beta(message)
            if event is None:
                return
            message = event
        await super().send(message)

    def report_error(self, error: CantataError) -> None:
        self.emit(make_error_event(error, None))

    def close(self) -> None:
        self._free()
        super().close()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        self._free()
        super().stop(reason)

    async def close_gracefully(self) -> None:
        if self._expired:
            limit_s = self.context.settings.realtime.max_session_s
            await self.close_with_error(
                SessionExpired(f"a session lasts {limit_s:g} s at most; connect again")
            )
        else:
            await self.close_socket(NORMAL)

    async def close_with_error(self, error: CantataError | None) -> None:
        await self.send(make_error_event(error or RuntimeError(), None))
        over = isinstance(error, IdleTimeout | SessionExpired)
        await self.close_socket(NORMAL if over else close_code(error))

    async def handle_event(self, event: AnyClientEvent) -> None:
        """Dispatch a client's event; errors as of `handle_message`."""
        handler = self.handler
        match event:
            case AudioAppend():
                limits = self.context.settings.realtime
                await handler.append_audio(decode_sound(event.audio, "audio", limits))
            case AudioCommit():
                handler.commit_audio()
            case AudioClear():
                handler.clear_audio()
                self.emit(BufferEvent())
            case OutputAudioClear():
                raise ProtocolViolation(
                    f"{event.type}: this session's client plays the answers, and stops by itself; "
                    "valid in calls (WebRTC)",
                    "type",
                )
            case SessionUpdate():
                await self.configure(event.session)
                self.emit(SessionEvent(type="session.updated", session=self.describe()))
            case TranscriptionSessionUpdate():
                await self.configure({**event.session, "type": "transcription"})
                flat = flatten_transcription_session(self.describe())
                self.emit(SessionEvent(type="transcription_session.updated", session=flat))
            case ItemCreate():
                handler.create_item(event)
            case ItemRetrieve():
                item = self._conversation.get(event.item_id)
                self.emit(ItemRetrieved(item=item.to_object()))
            case ItemTruncate():
                handler.truncate_item(event)
            case ItemDelete():
                handler.delete_item(event.item_id)
            case ResponseCreate():
                self.check_not_draining()
                await handler.create_response(event.response)
            case ResponseCancel():
                handler.responses.cancel(CLIENT_CANCELLED, event.response_id)

    def describe(self) -> dict[str, Any]:
        return build_session_object(self._identity, self.handler.settings, self.handler.voice)

    def emit(self, *events: ServerEvent) -> None:
        """Send events in order, without waiting."""
        for event in events:
            self._output_audio.outbox.post(event)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(work, name=f"{self.name}:work")

    def _on_response_done(self, reply: Reply) -> None:
        self.handler.on_response_done(reply)
        self.touch()
        self.on_message_handled()

    def _expire(self) -> None:
        self._expired = True
        self.stop(EndReason.CANCELLED)

    def _free(self) -> None:
        self.handler.stop()
        if self._expiry is not None:
            self._expiry.cancel()


async def describe_session(
    context: ApiContext, choice: ModelChoice, settings: dict[str, Any]
) -> dict[str, Any]:
    """The session that these settings make, which does not begin.

    Args:
        settings: as in `session.update`.

    Raises:
        InvalidRequest: a setting is not valid, or needs what is not installed.
    """
    session = RealtimeConnection(_NoSocket(), context, choice)
    try:
        await session.configure(settings)
        return session.describe()
    finally:
        session.handler.stop()


class _NoSocket:
    """Implements `MessageSocket` for a session that never begins."""

    async def receive(self) -> MutableMapping[str, Any]:
        raise RuntimeError("there is no client")

    async def send_text(self, data: str) -> None:
        raise RuntimeError("there is no client")

    async def send_bytes(self, data: bytes) -> None:
        raise RuntimeError("there is no client")

    async def close(self, code: int = NORMAL) -> None:
        """Nothing is open."""


async def parse_event(text: str) -> AnyClientEvent:
    """One event of a client; errors as of `parse_message`."""
    if len(text) < _LARGE:
        return parse_message(CLIENT_EVENTS, CLIENT_TYPES, text)
    return await asyncio.to_thread(parse_message, CLIENT_EVENTS, CLIENT_TYPES, text)


def find_event_id(text: str) -> str | None:
    """The id of an event that is otherwise not valid."""
    try:
        sent = json.loads(text) if len(text) < _LARGE else None
    except (ValueError, RecursionError):
        return None
    found = sent.get("event_id") if isinstance(sent, dict) else None
    return found if isinstance(found, str) else None


def make_error_event(error: BaseException, event_id: str | None) -> ErrorEvent:
    """The event that tells a client of an error, which its event of this id caused."""
    detail = describe(error).detail
    body = RealtimeErrorBody(
        type=detail.type,
        code=detail.code,
        message=detail.message,
        param=detail.param,
        event_id=event_id,
    )
    return ErrorEvent(error=body)
