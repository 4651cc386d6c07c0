"""WebSocket connections."""

from __future__ import annotations

from uvicorn._types import ASGISendEvent
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol


class QuietWebSocket(WebSocketsSansIOProtocol):
    """Treats a handshake that was rejected with an HTTP response as complete.

    uvicorn logs an error for each of them: a line for every client without a key.
    """

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True
