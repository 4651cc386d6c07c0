"""Rejects requests for speech, answers and pictures while there is no room for any: before their
body is read, before a WebSocket session is set up.

In a stampede most requests are rejected and soon retried. Each rejection takes api time that
running streams need, so it costs no more than HTTP itself. Plain ASGI.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from cantata.api.context import ApiContext
from cantata.api.errors import refuse
from cantata.api.http.request_line import (
    REALTIME_PATH,
    normalize_path,
    resumes_session,
    to_openai_path,
)
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.errors import Overloaded
from cantata.contract.image_service import ImageModel, ImageService
from cantata.contract.service import SpeechModel

_CHAT = "/v1/chat/completions"
_IMAGES = ("/v1/images/generations", "/v1/images/edits")
_POSTS = ("/v1/audio/speech", "/v1/speak")
_POSTS_UNDER = "/v1/text-to-speech/"
_STREAM = "/v1/audio/speech/stream"
_REJECTION = "cantata.rejection"

AnyModel = SpeechModel | ChatModel | ImageModel


class OverloadMiddleware:
    """429 with `retry-after`, also in answer to a WebSocket's handshake."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        models = _find_asked_models(scope, self._context.service)
        rejection = scope.get(_REJECTION) or _find_rejection(models)
        if rejection is None:
            await self._app(scope, receive, send)
            return
        name = next(iter(models), self._context.service.default_model)
        self._context.metrics.count_rejection(name, rejection.code)
        await refuse(scope, receive, send, rejection)


def note_rejection(handshake: Scope, service: ImageService) -> bool:
    """Whether `OverloadMiddleware` is to reject this WebSocket handshake; if so, it will.
    `handshake`: the HTTP request's scope; the rejection is noted in it."""
    rejection = _find_rejection(_find_socket_models(handshake, service))
    if rejection is not None:
        handshake[_REJECTION] = rejection
    return rejection is not None


def _find_rejection(models: Mapping[str, AnyModel]) -> Overloaded | None:
    """Why none of these models accepts a request; None if one does, since only the body names the
    model."""
    rejection: Overloaded | None = None
    for model in models.values():
        try:
            model.check_room()
        except Overloaded as error:
            rejection = error
        else:
            return None
    return rejection


def _find_asked_models(scope: Scope, service: ImageService) -> Mapping[str, AnyModel]:
    """The models that a request may be for. Batches wait outside the queue."""
    if scope["type"] == "websocket":
        return _find_socket_models(scope, service)
    if scope["type"] != "http" or scope["method"] != "POST":
        return {}
    path = to_openai_path(scope["path"])
    if path == _CHAT:
        painters = service.image_models.values()
        drawing = {one.name: one for one in painters if one.limits.conversations}
        return {**drawing, **service.chat_models}
    if path in _IMAGES:
        return service.image_models
    return service.models if path in _POSTS or path.startswith(_POSTS_UNDER) else {}


def _find_socket_models(
    scope: Scope, service: ImageService
) -> Mapping[str, SpeechModel | ChatModel]:
    path = normalize_path(scope["path"])
    if path == _STREAM:
        return service.models
    if path != REALTIME_PATH or resumes_session(scope):  # which was admitted when it began
        return {}
    # The address names the model; who reads it says whether that one is full.
    return {**service.models, **service.chat_models}
