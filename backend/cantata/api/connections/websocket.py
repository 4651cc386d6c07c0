"""WebSocket connections."""

from __future__ import annotations

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from cantata.api.context import ApiContext
from cantata.api.http.request_line import normalize_path

REALTIME_PATH = "/v1/realtime"


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

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
