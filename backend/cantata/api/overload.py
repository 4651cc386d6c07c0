"""Rejects requests for speech while the queue is full: before their body is read, before a
WebSocket session is set up.

In a stampede most requests are rejected and soon retried. Each rejection takes api time that
running streams need, so it costs no more than HTTP itself. Plain ASGI.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from cantata.api.context import ApiContext
from cantata.api.errors import refuse
from cantata.contract.data.errors import Overloaded
from cantata.contract.service import SpeechService

_POSTS = ("/v1/audio/speech", "/v1/speak")
_POSTS_UNDER = "/v1/text-to-speech/"
_SOCKETS = ("/v1/audio/speech/stream", "/v1/realtime")
_REJECTION = "cantata.rejection"


class OverloadMiddleware:
    """429 with `retry-after`, also in answer to a WebSocket's handshake."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rejection = scope.get(_REJECTION)
        if rejection is None and _asks_for_speech(scope):
            rejection = _rejection(self._context.service)
        if rejection is None:
            await self._app(scope, receive, send)
            return
        self._context.metrics.rejected(self._context.service.default_model, rejection.code)
        await refuse(scope, receive, send, rejection)


def note_rejection(handshake: Scope, service: SpeechService) -> bool:
    """Whether `OverloadMiddleware` is to reject this WebSocket handshake; if so, it will.

    Args:
        handshake: the HTTP request's scope; the rejection is noted in it.
        service: the session's.
    """
    rejection = _rejection(service) if handshake["path"] in _SOCKETS else None
    if rejection is not None:
        handshake[_REJECTION] = rejection
    return rejection is not None


def _rejection(service: SpeechService) -> Overloaded | None:
    """Why no model accepts a request; None if one does, since only the body names the model."""
    rejection: Overloaded | None = None
    for model in service.models.values():
        try:
            model.check_room()
        except Overloaded as error:
            rejection = error
        else:
            return None
    return rejection


def _asks_for_speech(scope: Scope) -> bool:
    """Live speech; batches wait outside the queue."""
    if scope["type"] == "websocket":
        return scope["path"] in _SOCKETS
    if scope["type"] != "http" or scope["method"] != "POST":
        return False
    return scope["path"] in _POSTS or str(scope["path"]).startswith(_POSTS_UNDER)
