"""HTTP and WebSocket connections whose clients must send a head, and a body, in time.

uvicorn waits without limit for a first head, for the rest of a head and for a body.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import Any, cast

import h11
from starlette.types import Scope
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.http11 import Request

from cantata.api.connections.acceptor import ConnectionGate
from cantata.api.context import ApiContext
from cantata.api.errors import INVALID_REQUEST, SERVER_ERROR, build_detail
from cantata.api.http.overload import note_rejection
from cantata.api.http.request_line import REALTIME_PATH, normalize_path
from cantata.api.http.streamed_response import CUT
from cantata.api.schemas import ErrorBody
from cantata.api.server.drain import GoingAway
from cantata.api.settings import ConnectionSettings
from cantata.contract.data.errors import CantataError, InvalidRequest

LOST = 1006
"""Code of a connection that ended without a close (RFC 6455, 7.1.5)."""


class PlainHandshake(H11Protocol):
    """Stays with HTTP if the app would reject the session at once: switching protocols and parsing
    the head again takes longer than the response itself."""

    def _should_upgrade(self) -> bool:
        if not super()._should_upgrade():
            return False
        context: ApiContext = self.config.app.state.context  # type: ignore[union-attr]
        return not note_rejection(cast(Scope, self.scope), context.service)


class RequestTimeout(InvalidRequest):
    code = "request_timeout"


class _Wait(Enum):
    """The part of a request that the client still has to send."""

    NOTHING = "nothing"
    HEAD = "head"
    BODY = "body"


class TimedHttp(PlainHandshake):
    """Closes a connection whose client does not finish sending its request.

    A head has a fixed time limit. A body has a credit that every byte extends, so that a slow
    upload may take as long as it needs, but one that trickles may not.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        limits: ConnectionSettings,
        gate: ConnectionGate,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._limits = limits
        self._gate = gate
        self._wait = _Wait.NOTHING
        self._deadline = 0.0
        """Loop time; of a body it moves with every byte."""
        self._timer: asyncio.TimerHandle | None = None
        self._received = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._gate.idle(self)
        self._expect(_Wait.HEAD, self._limits.head_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received = True
        super().data_received(data)
        self._look(len(data))

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._release()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look(0)

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None:
            cast(Scope, self.scope)[CUT] = self._cut_body

    def _cut_body(self) -> None:
        """Close the connection, so that the client sees that its body is incomplete; uvicorn would
        do it too, but call it an error of the application."""
        self.cycle.disconnected = True
        self.transport.close()

    def make_room(self) -> None:
        """Close: a new connection needs this one's place, and this one has no request."""
        self.transport.close()

    def cut_off(self) -> None:
        """End the request in progress: the server is stopping and has waited long enough."""
        if self.conn.our_state is h11.SEND_RESPONSE:
            self._send_error(503, GoingAway())
        else:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that h11 cannot parse, in the same form as every other error."""
        self._send_error(400, InvalidRequest(msg))

    def _look(self, received: int) -> None:
        """Update what the client still has to send after this many more bytes."""
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        state = self.conn.their_state
        if state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE:
            self._gate.busy(self)
            if self._wait is not _Wait.BODY:
                self._expect(_Wait.BODY, self._limits.body_timeout_s)
            self._deadline += received / self._limits.body_bytes_per_s
        elif state is not h11.IDLE:
            self._gate.busy(self)
            self._expect(_Wait.NOTHING)
        else:
            self._gate.idle(self)
            if self.timeout_keep_alive_task is not None and not self.conn.trailing_data[0]:
                # Between two requests uvicorn's own timer runs.
                self._expect(_Wait.NOTHING)
            elif self._wait is not _Wait.HEAD:
                self._unset_keepalive_if_required()
                self._expect(_Wait.HEAD, self._limits.head_timeout_s)

    def _expect(self, wait: _Wait, seconds: float = 0.0) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._wait = wait
        if wait is not _Wait.NOTHING:
            self._deadline = self.loop.time() + seconds
            self._timer = self.loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        now = self.loop.time()
        if self._wait is _Wait.BODY and (
            self.flow.read_paused or self.conn.they_are_waiting_for_100_continue
        ):
            # The client waits for the server.
            self._deadline = now + self._limits.body_timeout_s
        if now < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._on_timer)
        elif self._received:
            self._send_error(
                408, RequestTimeout(f"the request's {self._wait.value} came too slowly")
            )
        else:
            self.transport.abort()

    def _send_error(self, status: int, error: CantataError) -> None:
        """Send an error and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            kind = SERVER_ERROR if status >= 500 else INVALID_REQUEST
            body = ErrorBody(error=build_detail(error, kind)).model_dump_json().encode()
            head = h11.Response(
                status_code=status,
                headers=[
                    ("content-type", "application/json"),
                    ("content-length", str(len(body))),
                    ("connection", "close"),
                ],
                reason=STATUS_PHRASES[status],
            )
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _release(self) -> None:
        self._gate.busy(self)
        self._expect(_Wait.NOTHING)


class QuietWebSocket(WebSocketsSansIOProtocol):
    """Treats a handshake that was rejected with an HTTP response as complete.

    uvicorn logs an error for each of them: a line for every client without a key.
    """

    def handle_connect(self, event: Request) -> None:
        if normalize_path(event.path.partition("?")[0]) == REALTIME_PATH:
            # Its clients may send minutes of sound at once.
            context: ApiContext = self.config.app.state.context  # type: ignore[union-attr]
            self.conn.max_message_size = context.settings.realtime.max_message_bytes
        super().handle_connect(event)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.handshake_complete:
            # uvicorn calls it 1005, which is a close without a code. A close that came is read
            # before this.
            self.queue.put_nowait({"type": "websocket.disconnect", "code": LOST})
        super().connection_lost(exc)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
