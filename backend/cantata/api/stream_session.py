"""One WebSocket connection: a reader that always runs, a speaker, a writer, in one task group."""

from __future__ import annotations

import asyncio
import logging
import uuid

from starlette.websockets import WebSocket, WebSocketDisconnect

from cantata.api.context import ApiContext
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
    parse_client_message,
)
from cantata.api.outbox import AudioFrame, Item, Outbox, OutboxFull
from cantata.api.schemas import ErrorDetail
from cantata.api.speaker import Speaker
from cantata.api.text_input import TextInput
from cantata.contract.errors import CantataError, ProtocolViolation
from cantata.metrics import EndReason

logger = logging.getLogger(__name__)

_NORMAL, _POLICY, _INTERNAL, _TRY_LATER = 1000, 1008, 1011, 1013
_LAST_WORDS_S = 1.0
"""How long a client that is being closed may take to accept the reason."""


class StreamSession:
    """Owns everything of one connection; `run` returns when nothing of it is left."""

    def __init__(self, socket: WebSocket, context: ApiContext) -> None:
        self._socket = socket
        self._context = context
        self._settings = context.settings
        self._name = f"ws:{uuid.uuid4().hex[:8]}"
        self._outbox = Outbox(self._settings.outbox_bytes)
        self._speaker = Speaker(
            self._outbox, context.metrics, self._settings.max_pending_utterances, self._set_busy
        )
        self._input = TextInput(context, self._speaker)
        self._timer = asyncio.timeout(self._settings.socket_config_timeout_s)
        self._busy = False
        self._closing = False

    async def run(self) -> None:
        """Serve an accepted socket to its end."""
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
            # The edge of the connection: whatever broke ends this client's session, no other.
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
        await self._speaker.run(group)
        if self._closing:
            await self._outbox.put(SessionDone())
        self._outbox.close()

    async def _write(self) -> None:
        try:
            while (item := await self._outbox.get()) is not None:
                await self._send(item)
            if self._closing:
                await self._socket.close(_NORMAL)
        except (WebSocketDisconnect, RuntimeError):
            # RuntimeError is Starlette's word for sending after the disconnect was read.
            self._hang_up()
        except TimeoutError:
            logger.info("%s was left unread", self._name)
            self._hang_up(EndReason.CLIENT_STALLED)

    async def _send(self, item: Item) -> None:
        async with asyncio.timeout(self._settings.stall_timeout_s):
            if isinstance(item, AudioFrame):
                await self._socket.send_bytes(item.data)
            else:
                await self._socket.send_text(item.model_dump_json())

    async def _take(self, text: str | None) -> None:
        """Act on one message; what is wrong with it is answered and forgotten."""
        context_id = None
        try:
            if text is None:
                raise ProtocolViolation("binary messages go from the server to the client only")
            message = parse_client_message(text)
            context_id = message.context_id
            if self._closing and not isinstance(message, InputCancel):
                raise ProtocolViolation(f"{message.type} after session.close", "type")
            answer = await self._act(message)
            if answer is not None:
                self._outbox.post(answer)
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
                self._speaker.cancel()
                return InputCancelled(context_id=message.context_id)
            case SessionClose():
                self._closing = True
                self._speaker.finish()
        return None

    def _hang_up(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        """Nobody listens any more."""
        self._outbox.discard()
        self._speaker.stop(reason)

    def _set_busy(self, busy: bool) -> None:
        self._busy = busy
        self._touch()

    def _touch(self) -> None:
        """Put the idle deadline off; before the first configuration its own deadline stands.

        Sound is made faster than it is heard: a client is idle only when it has played it.
        """
        if self._input.configured and not self._timer.expired():
            now = asyncio.get_running_loop().time()
            quiet_since = max(now, self._speaker.heard_until)
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
        """Say why, then close; a client that takes neither is left to the keepalive."""
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self._socket.send_text(ErrorMessage(error=detail).model_dump_json())
                await self._socket.close(code)
        except (TimeoutError, WebSocketDisconnect, RuntimeError):
            logger.debug("%s took no last words", self._name)
