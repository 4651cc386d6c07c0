"""The server's own WebSocket protocol (docs/protocol.md)."""

from __future__ import annotations

import contextlib

from starlette.websockets import WebSocket

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.sessions.connection import Channel, IdleTimeout
from cantata.api.sessions.socket import NORMAL, SocketConnection, close_code
from cantata.api.speech.messages import (
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
from cantata.api.speech.outbox import AudioFrame, Item, OutboxFull
from cantata.api.speech.text_input import TextInput
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import CantataError, ProtocolViolation


class ConfigTimeout(ProtocolViolation):
    """The client sent no valid configuration."""

    code = "config_timeout"


class NativeConnection(SocketConnection):
    """One accepted WebSocket of Cantata's own protocol."""

    handles_after_close = True  # a cancel still counts

    def __init__(self, socket: WebSocket, context: ApiContext) -> None:
        settings = context.settings
        self._config_timeout_s = settings.socket_config_timeout_s
        super().__init__(
            socket,
            context,
            "ws",
            settings.socket_idle_timeout_s,
            first_timeout_s=self._config_timeout_s,
        )
        self._speaker = _NativeChannel(self)
        self._input = TextInput(context, self._speaker.utterances)
        self._closed = False
        """The client has asked to close."""

    def begin(self) -> None:
        self.open(self._speaker)

    def has_pending_text(self) -> bool:
        return self._input.unfinished

    def touch(self) -> None:
        if self._input.configured:  # before, a deadline of its own applies
            super().touch()

    async def handle_message(self, text: str) -> None:
        context_id = None
        try:
            message = parse_client_message(text)
            context_id = message.context_id
            if self._closed and not isinstance(message, InputCancel):
                raise ProtocolViolation(f"{message.type} was sent after session.close", "type")
            if isinstance(message, InputText) and not self._input.unfinished:
                self.check_not_draining()
            answer = await self._dispatch(message)
            if answer is not None:
                self._speaker.outbox.post(answer)
        except CantataError as error:
            self._speaker.outbox.post(ErrorMessage.of(error, context_id))

    def report_error(self, error: CantataError) -> None:
        self._speaker.outbox.post(ErrorMessage.of(error, None))

    async def _dispatch(self, message: ClientMessage) -> ServerMessage | None:
        match message:
            case SessionConfig():
                configured = await self._input.configure(message)
                self.touch()
                return configured
            case InputText():
                self._input.append(message)
            case InputDone():
                self._input.commit(message.context_id)
            case InputCancel():
                self._input.clear()
                self._speaker.utterances.cancel()
                return InputCancelled(context_id=message.context_id)
            case SessionClose():
                self._closed = True
                self.close()
        return None

    def begin_drain(self) -> None:
        with contextlib.suppress(OutboxFull):
            self._speaker.outbox.post(SessionGoingAway())
        super().begin_drain()

    async def send_session_done(self) -> None:
        """Confirm the client's `session.close`."""
        if self._closed:
            await self.send(SessionDone())

    def build_timeout_error(self) -> CantataError:
        if self._input.configured:
            return super().build_timeout_error()
        return ConfigTimeout(f"no valid session.config arrived within {self._config_timeout_s:g} s")

    async def close_with_error(self, error: CantataError | None) -> None:
        detail = describe(error or RuntimeError()).detail
        await self.send(ErrorMessage(error=detail))
        await self.close_socket(NORMAL if isinstance(error, IdleTimeout) else close_code(error))


class _NativeChannel(Channel):
    """The connection's only channel; it sends messages as they are, and sound as 16-bit PCM."""

    def __init__(self, connection: NativeConnection) -> None:
        super().__init__(connection)
        self._socket = connection

    async def write(self, item: Item) -> None:
        sent = encode_s16le(item.sound) if isinstance(item, AudioFrame) else item
        await self._socket.send(sent)

    async def end(self) -> None:
        await self._socket.send_session_done()
