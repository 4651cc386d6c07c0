"""Who may ask: API keys, pages of other sites, and how much one key may have open.

Plain ASGI around the whole app: what is refused here is refused before its body is read, and for
every route, adapters and pages included.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.api.api_keys import ApiKeys, shown_keys, spoken_subprotocol
from cantata.api.errors import describe, respond
from cantata.api.settings import SecuritySettings
from cantata.contract.errors import CantataError, Forbidden, Overloaded, Unauthorized

ANY_ORIGIN = "*"
_EXPOSED = (
    "x-request-id",
    "x-sample-rate",
    "x-channels",
    "x-ignored",
    "retry-after",
    "server-timing",
)

_OPEN = ("/health", "/ready")
_LISTS = ("/v1/models", "/v1/audio/models", "/v1/audio/voices")
_GUARDED_READS = ("/v1", "/metrics", "/docs", "/redoc", "/openapi.json")
"""Under these, reading needs a key too. The rest that can be read are pages and their scripts."""
_TRUSTED = "cantata.trusted"
_KEY_LABEL = "cantata.key"
_READING = ("GET", "HEAD")


def install(app: FastAPI, settings: SecuritySettings) -> None:
    """Guard an app. The last one added is the outermost."""
    keys = settings.api_keys
    if settings.max_concurrent_per_key is not None:
        app.add_middleware(ConcurrencyMiddleware, limit=settings.max_concurrent_per_key)
    app.add_middleware(KeyMiddleware, keys=keys, public_lists=settings.public_lists)
    app.add_middleware(
        OriginMiddleware, allowed=frozenset(settings.allowed_origins), named_hosts=len(keys) > 0
    )
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("authorization", "content-type", "x-api-key"),
            expose_headers=_EXPOSED,
        )


def is_trusted(scope: Scope) -> bool:
    """Whether a request showed a key, or none is needed."""
    return bool(scope[_TRUSTED])


class KeyMiddleware:
    """401 for a request without a known key, where one is needed."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, public_lists: bool) -> None:
        self._app = app
        self._keys = keys
        self._public_lists = public_lists

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        labels = [label for key in shown_keys(scope) if (label := self._keys.match(key))]
        scope[_KEY_LABEL] = labels[0] if labels else None
        scope[_TRUSTED] = bool(labels) or not self._keys
        if is_trusted(scope) or self._is_open(scope):
            await self._app(scope, receive, _agreeing(scope, send))
            return
        shown = next(shown_keys(scope), None)
        problem = "this API key is not known" if shown else "this server needs an API key"
        refusal = Unauthorized(f"{problem}; send it as Authorization: Bearer <key>")
        await _refuse(scope, receive, send, refusal)

    def _is_open(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] not in _READING:
            return False
        path = _path(scope)
        if path in _OPEN:
            return True
        if self._public_lists and (path in _LISTS or path.startswith("/v1/models/")):
            return True
        return not any(path == start or path.startswith(f"{start}/") for start in _GUARDED_READS)


class ConcurrencyMiddleware:
    """429 for a key that has its number of requests and WebSockets open. Reading is free."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope.get(_KEY_LABEL)
        if key is None or (scope["type"] == "http" and scope["method"] in _READING):
            await self._app(scope, receive, send)
            return
        if self._open[key] >= self._limit:
            refusal = Overloaded(f"this API key may have {self._limit} requests open at a time")
            await _refuse(scope, receive, send, refusal)
            return
        self._open[key] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[key] -= 1


class OriginMiddleware:
    """403 for what a page of another site makes a browser send.

    Browsers send some of that without asking the server first: forms, such as an upload, and
    every WebSocket. A page counts as the server's own when its origin is the host that it asks.
    Without keys the host must moreover be an address or localhost: a site can have its own name
    lead here (DNS rebinding), but not such a one.
    """

    def __init__(self, app: ASGIApp, allowed: frozenset[str], named_hosts: bool) -> None:
        self._app = app
        self._allowed = allowed
        self._named_hosts = named_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = None if _is_harmless(scope) else Headers(scope=scope).get("origin")
        if origin is None or self._may(origin, Headers(scope=scope).get("host", "")):
            await self._app(scope, receive, send)
            return
        refusal = Forbidden(
            f"pages of {origin[:100]!r} may not use this server; "
            "its operator can allow them with --allow-origin"
        )
        await _refuse(scope, receive, send, refusal)

    def _may(self, origin: str, host: str) -> bool:
        if origin in self._allowed or ANY_ORIGIN in self._allowed:
            return True
        scheme, separator, its_host = origin.partition("://")
        own = bool(separator) and scheme in ("http", "https") and its_host.lower() == host.lower()
        return own and (self._named_hosts or _is_unmistakable(host))


def _is_harmless(scope: Scope) -> bool:
    """What changes nothing, and shows a foreign page nothing without CORS."""
    return scope["type"] == "lifespan" or (
        scope["type"] == "http" and scope["method"] in (*_READING, "OPTIONS")
    )


def _is_unmistakable(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name == "localhost":
            return True
        ip_address(name)
    except ValueError:
        return False
    return True


def _path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _agreeing(scope: Scope, send: Send) -> Send:
    """`send` that agrees to the subprotocol of a WebSocket client which showed its key in one."""
    protocol = spoken_subprotocol(scope)
    if protocol is None:
        return send

    async def send_agreeing(message: Message) -> None:
        if message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message = {**message, "subprotocol": protocol}
        await send(message)

    return send_agreeing


async def _refuse(scope: Scope, receive: Receive, send: Send, error: CantataError) -> None:
    extensions: dict[str, Any] = scope.get("extensions") or {}
    if scope["type"] == "websocket" and "websocket.http.response" not in extensions:
        await send({"type": "websocket.close", "code": 1008, "reason": error.message})
        return
    await respond(HTTPConnection(scope), describe(error))(scope, receive, send)
