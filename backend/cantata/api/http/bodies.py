"""Request bodies: which encodings are accepted, and what happens to a body that is not read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.contract.data.errors import CantataError, InvalidRequest, NotStored

_LINGER_S = 1.0
_LINGER_BYTES = 16 << 20
_SMALL_BYTES = 64 << 10
"""A body this small has probably arrived with its head."""


def has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


class CheckedRoute(APIRoute):
    """A route that says what is wrong with a body that cannot be read.

    FastAPI answers every such error with "there was an error parsing the body".
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handle_naming_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException as error:
                raise _find_named_cause(error.__cause__) or error from None

        return handle_naming_errors


def _find_named_cause(cause: BaseException | None) -> CantataError | None:
    match cause:
        case CantataError():
            return cause
        case UnicodeDecodeError():
            return InvalidRequest(f"the body is not valid UTF-8 (byte {cause.start})")
        case RecursionError():
            return InvalidRequest("the body is nested too deeply")
        case OSError():
            # An upload is kept in a temporary file while it arrives.
            return NotStored(f"the upload cannot be stored: {cause.strerror}")
        case _:
            return None


class EncodingMiddleware:
    """415 for a compressed body: the server never decompresses untrusted data."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        encoding = Headers(scope=scope).get("content-encoding", "identity").strip().lower()

        async def receive_plain() -> Message:
            if encoding not in ("", "identity"):
                raise HTTPException(
                    415,
                    f"the body has the content-encoding {encoding[:100]!r}; send it uncompressed",
                    headers={"accept-encoding": "identity"},
                )
            return await receive()

        await self._app(scope, receive_plain, send)


class UnreadBodyMiddleware:
    """Closes the connection after a response that comes before the end of the request's body.

    The server would otherwise read all of it to reach the next request. The rest is read
    for a moment longer: a client that is still sending would lose the response.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and has_body(scope):
            await self._app(scope, *_close_early(scope, receive, send))
        else:
            await self._app(scope, receive, send)


def _close_early(scope: Scope, receive: Receive, send: Send) -> tuple[Receive, Send]:
    whole = closes = False

    async def receive_noting() -> Message:
        nonlocal whole
        message = await receive()
        whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def send_closing(message: Message) -> None:
        nonlocal closes
        if message["type"] == "http.response.start" and not whole:
            if _is_small(scope):
                await _discard(receive_noting, lambda: whole, seconds=0)
            if not whole:
                closes = True
                MutableHeaders(scope=message)["connection"] = "close"
        elif closes and not message.get("more_body", False):
            await send({**message, "more_body": True})
            await _discard(receive_noting, lambda: whole, seconds=_LINGER_S)
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    return receive_noting, send_closing


def _is_small(scope: Scope) -> bool:
    length = Headers(scope=scope).get("content-length", "")
    return length.isdigit() and int(length) <= _SMALL_BYTES


async def _discard(receive: Receive, ended: Callable[[], Any], seconds: float) -> None:
    """Read up to the end of the body, or what arrives within a time and a size."""
    consumed = 0
    try:
        async with asyncio.timeout(seconds):
            while not ended() and consumed < _LINGER_BYTES:
                consumed += len((await receive()).get("body", b""))
    except TimeoutError:
        return
