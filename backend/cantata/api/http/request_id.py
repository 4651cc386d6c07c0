"""An id for every request, and a limit on every body: plain ASGI, so streams are not buffered."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.api.http.request_line import to_openai_path
from cantata.utils.logs import log_for_request

REQUEST_ID_HEADER = "x-request-id"
_SCOPE_KEY = "cantata.request_id"
_ARRIVED_KEY = "cantata.arrived_at"
_USABLE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
"""Characters that are safe both in logs and in headers."""


def make_request_id() -> str:
    return f"req_{uuid.uuid4().hex}"


def get_request_id(scope: Scope) -> str:
    """The id of this request: the client's own if it sent a usable one, otherwise generated."""
    known = scope.get(_SCOPE_KEY)
    if isinstance(known, str):
        return known
    sent = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    chosen = sent if _USABLE.fullmatch(sent) else make_request_id()
    scope[_SCOPE_KEY] = chosen
    return chosen


def arrived_at(scope: Scope) -> float:
    """When the request's head arrived, by the monotonic clock."""
    arrived: float = scope[_ARRIVED_KEY]
    return arrived


def begin_request(scope: Scope) -> str:
    """Note that a request has arrived; returns its id."""
    scope[_ARRIVED_KEY] = time.monotonic()
    return get_request_id(scope)


class RequestIdMiddleware:
    """`x-request-id` on every HTTP response, and on the log records of a request or connection."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request_id = begin_request(scope)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id
            await send(message)

        with log_for_request(request_id):
            await self._app(scope, receive, send_with_id)


class BodyLimitMiddleware:
    """Bodies over a limit get 413: at once if their length is announced, otherwise when
    they exceed it."""

    def __init__(self, app: ASGIApp, max_bytes: int, larger: Mapping[str, int]) -> None:
        """`larger`: the limits of the routes that take recordings, by path."""
        self._app = app
        self._max_bytes = max_bytes
        self._larger = larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        consumed = 0
        limit = self._larger.get(to_openai_path(scope["path"]), self._max_bytes)

        async def receive_bounded() -> Message:
            nonlocal consumed
            if self._read_content_length(scope) > limit:
                raise self._build_too_large_error(limit)
            message = await receive()
            consumed += len(message.get("body", b""))
            if consumed > limit:
                raise self._build_too_large_error(limit)
            return message

        await self._app(scope, receive_bounded, send)

    def _read_content_length(self, scope: Scope) -> int:
        length = Headers(scope=scope).get("content-length", "0")
        return int(length) if length.isdigit() else 0

    def _build_too_large_error(self, limit: int) -> HTTPException:
        return HTTPException(413, f"the body is larger than {limit} bytes")
