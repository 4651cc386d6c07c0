"""An id for every request, and a bound on every body: plain ASGI, so streams pass untouched."""

from __future__ import annotations

import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID_HEADER = "x-request-id"
_SCOPE_KEY = "cantata.request_id"


def request_id_of(scope: Scope) -> str:
    """The id of this request, made on first use."""
    known = scope.get(_SCOPE_KEY)
    if isinstance(known, str):
        return known
    made = f"req_{uuid.uuid4().hex}"
    scope[_SCOPE_KEY] = made
    return made


class RequestIdMiddleware:
    """`x-request-id` on every HTTP response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


class BodyLimitMiddleware:
    """Bodies over a limit end with 413: at once where their length is announced, else as soon as
    they cross it."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        taken = 0

        async def receive_bounded() -> Message:
            nonlocal taken
            if self._announced(scope) > self._max_bytes:
                raise self._too_large()
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max_bytes:
                raise self._too_large()
            return message

        await self._app(scope, receive_bounded, send)

    def _announced(self, scope: Scope) -> int:
        length = Headers(scope=scope).get("content-length", "0")
        return int(length) if length.isdigit() else 0

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"the body is larger than {self._max_bytes} bytes")
