"""One WebSocket connection: reader, utterance queue and writer in one task group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid

from starlette.websockets import WebSocket, WebSocketDisconnect

from cantata.api.context import ApiContext
from cantata.api.drain import GoingAway
from cantata.api.errors import INVALID_REQUEST, describe, first_error
from cantata.api.messages import (
    ClientMessage,
    ErrorMessage,
    InputCancel,
    InputCancelled,
    InputDone,
    InputText,
    ServerMessage,
    SessionClose,
    SessionConfig,
    SessionDone,
    SessionGoingAway,
    parse_client_message,
)
from cantata.api.outbox import AudioFrame, Item, Outbox, OutboxFull
from cantata.api.schemas import ErrorDetail
from cantata.api.text_input import TextInput
from cantata.api.utterance_queue import UtteranceQueue
from cantata.contract.errors import CantataError, ProtocolViolation
from cantata.metrics import EndReason

logger = logging.getLogger(__name__)

_NORMAL, _GOING_AWAY, _POLICY, _INTERNAL, _TRY_LATER = 1000, 1001, 1008, 1011, 1013
_LAST_WORDS_S = 1.0
"""Time limit for sending the reason before closing."""


class WebSocketSession:
    """Owns everything of one connection; `run` returns when nothing of it is left."""

    def __init__(self, socket: WebSocket, context: ApiContext) -> None:
        self._socket = socket
        self._context = context
        self._settings = context.settings
        self._name = f"ws:{uuid.uuid4().hex[:8]}"
        self._outbox = Outbox(self._settings.outbox_bytes)
        self._utterances = UtteranceQueue(
            self._outbox, context.metrics, self._settings.max_pending_utterances, self._set_busy
        )
        self._input = TextInput(context, self._utterances)
        self._timer = asyncio.timeout(self._settings.socket_config_timeout_s)
        self._busy = False
        self._gone = False
        self._closing = False
        """The client has asked to close."""
        self._leaving = False
        """The server is stopping: the current turn is the last one."""

    async def run(self) -> None:
        """Serve an accepted socket to its end."""
        with self._context.drain.telling(self._leave):
            await self._serve()

    async def _serve(self) -> None:
        try:
            self._context.lifecycle.check()
            async with self._timer, asyncio.TaskGroup() as group:
                reader = group.create_task(self._read(), name=f"{self._name}:read")
                group.create_task(self._speak(group), name=f"{self._name}:speak")
                await group.create_task(self._write(), name=f"{self._name}:write")
                reader.cancel()
        except TimeoutError:
            await self._end(self._timeout(), _NORMAL if self._input.configured else _POLICY)
        except CantataError as error:
            await self._end(describe(error).detail, _TRY_LATER)
        except BaseExceptionGroup as errors:
            # The edge of the connection: a fault ends this client's session and no other.
            await self._end_broken(first_error(errors))

    async def _read(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                logger.debug("%s disconnected", self._name)
                self._hang_up()
                return
            self._touch()
            await self._take(message.get("text"))

    async def _speak(self, group: asyncio.TaskGroup) -> None:
        await self._utterances.run(group)
        if self._closing:
            await self._outbox.put(SessionDone())
        self._outbox.close()

    async def _write(self) -> None:
        try:
            while (item := await self._outbox.get()) is not None:
                await self._send(item)
            if self._closing:
                await self._socket.close(_NORMAL)
            elif self._leaving and not self._gone:
                await self._end(describe(GoingAway()).detail, _GOING_AWAY)
        except (WebSocketDisconnect, RuntimeError):
            # Starlette raises RuntimeError when sending after a disconnect.
            self._hang_up()
        except TimeoutError:
            logger.info("%s stopped reading", self._name)
            self._hang_up(EndReason.CLIENT_STALLED)

    async def _send(self, item: Item) -> None:
        async with asyncio.timeout(self._settings.stall_timeout_s):
            if isinstance(item, AudioFrame):
                await self._socket.send_bytes(item.data)
            else:
                await self._socket.send_text(item.model_dump_json())

    async def _take(self, text: str | None) -> None:
        """Handle one message; an invalid one is answered with an error."""
        context_id = None
        try:
            if text is None:
                raise ProtocolViolation("binary messages go from the server to the client only")
            message = parse_client_message(text)
            context_id = message.context_id
            if self._closing and not isinstance(message, InputCancel):
                raise ProtocolViolation(f"{message.type} after session.close", "type")
            if self._leaving and isinstance(message, InputText) and not self._input.unfinished:
                raise GoingAway()
            answer = await self._act(message)
            if answer is not None:
                self._outbox.post(answer)
            if self._leaving and not self._input.unfinished:
                self._utterances.finish()
        except OutboxFull:
            raise
        except CantataError as error:
            self._outbox.post(ErrorMessage.of(error, context_id))

    async def _act(self, message: ClientMessage) -> ServerMessage | None:
        match message:
            case SessionConfig():
                configured = await self._input.configure(message)
                self._touch()
                return configured
            case InputText():
                self._input.append(message)
            case InputDone():
                self._input.commit(message.context_id)
            case InputCancel():
                self._input.clear()
                self._utterances.cancel()
                return InputCancelled(context_id=message.context_id)
            case SessionClose():
                self._closing = True
                self._utterances.finish()
        return None

    def _leave(self) -> None:
        """The server is stopping: notify the client, and end after the current turn."""
        self._leaving = True
        with contextlib.suppress(OutboxFull):
            self._outbox.post(SessionGoingAway())
        if not self._input.unfinished:
            self._utterances.finish()

    def _hang_up(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        """The client has disconnected."""
        self._gone = True
        self._outbox.discard()
        self._utterances.stop(reason)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._touch()

    def _touch(self) -> None:
        """Postpone the idle deadline; before the first configuration its own deadline applies.

        Sound is made faster than it is heard: a client is idle only when it has played it.
        """
        if self._input.configured and not self._timer.expired():
            now = asyncio.get_running_loop().time()
            quiet_since = max(now, self._utterances.heard_until)
            deadline = quiet_since + self._settings.socket_idle_timeout_s
            self._timer.reschedule(None if self._busy else deadline)

    def _timeout(self) -> ErrorDetail:
        if self._input.configured:
            waited = self._settings.socket_idle_timeout_s
            message, code = f"nothing was sent or spoken for {waited:g} s", "idle_timeout"
        else:
            waited = self._settings.socket_config_timeout_s
            message, code = f"no valid session.config within {waited:g} s", "config_timeout"
        return ErrorDetail(message=message, type=INVALID_REQUEST, code=code)

    async def _end_broken(self, error: BaseException) -> None:
        if isinstance(error, OutboxFull):
            logger.warning("%s: %s", self._name, error)
            await self._end(describe(ProtocolViolation(str(error))).detail, _POLICY)
        else:
            logger.error("%s broke", self._name, exc_info=error)
            await self._end(describe(error).detail, _INTERNAL)

    async def _end(self, detail: ErrorDetail, code: int) -> None:
        """Send the reason, then close; the keepalive handles a client that reads neither."""
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._socket.send_text(ErrorMessage(error=detail).model_dump_json())
                await self._socket.close(code)
        except (TimeoutError, WebSocketDisconnect, RuntimeError):
            logger.debug("%s did not read the closing message", self._name)
