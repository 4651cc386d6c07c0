"""Access: API keys, pages of other sites, host names, and how much a key may have open.

Plain ASGI around the whole app: requests rejected here are rejected before their body is read, on
every route, adapters and pages included.
"""

from __future__ import annotations

import re
import socket
from collections import Counter
from contextlib import ExitStack
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.api.access.api_keys import ApiKeys, choose_subprotocol, iterate_shown_keys
from cantata.api.access.client_secrets import ClientSecret, ClientSecrets, looks_like_secret
from cantata.api.errors import refuse
from cantata.api.http.bodies import has_body
from cantata.api.http.request_line import resumes_session
from cantata.api.settings import ANY_ORIGIN, SecuritySettings
from cantata.contract.data.errors import Forbidden, Overloaded, Unauthorized

_EXPOSED = (
    "x-request-id",
    "x-sample-rate",
    "x-channels",
    "x-ignored",
    "x-provenance",
    "x-verification",
    "retry-after",
    "content-disposition",
    "server-timing",
    "location",
    "mcp-session-id",
)

_OPEN = ("/health", "/ready")
_LISTS = ("/v1/models", "/v1/audio/models", "/v1/audio/voices")
_GUARDED_READS = ("/v1", "/v2", "/mcp", "/metrics", "/docs", "/openapi.json")
"""Under these, reading needs a key too. Other readable paths are pages and their scripts."""
_TRUSTED = "cantata.trusted"
_KEY_LABEL = "cantata.key"
_SECRET = "cantata.client_secret"
_SESSIONS = re.compile(r"/v1/realtime(/calls(/[^/]+/hangup)?)?")
"""What client secrets are for."""
_ENDS_WORK = re.compile(r"/(?:hangup|cancel)\Z")
_CARRIES_CALLS = "/mcp"
"""Its messages are calls, which take places themselves, and what cancels them."""
_PLACE = "cantata.key_place"
_READING = ("GET", "HEAD")


def install(app: FastAPI, settings: SecuritySettings, secrets: ClientSecrets) -> None:
    """Guard an app. The last one added is the outermost."""
    keys = settings.api_keys
    if settings.max_concurrent_per_key is not None:
        app.add_middleware(ConcurrencyMiddleware, limit=settings.max_concurrent_per_key)
    app.add_middleware(
        KeyMiddleware, keys=keys, secrets=secrets, public_lists=settings.public_lists
    )
    app.add_middleware(OriginMiddleware, allowed=frozenset(settings.allowed_origins))
    if not keys:
        app.add_middleware(HostMiddleware, allowed=_list_known_hosts(settings))
    if settings.allowed_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=("GET", "HEAD", "POST", "DELETE"),
            # SDKs send headers of their own (x-stainless-os, xi-api-key, openai-organization):
            # what is asked for is allowed.
            allow_headers=("*",),
            # A page on the Internet that its operator allowed may call a server on a local network.
            allow_private_network=True,
            expose_headers=_EXPOSED,
        )


def is_trusted(scope: Scope) -> bool:
    """Whether a request has a valid key, or needs none."""
    return bool(scope[_TRUSTED])


def has_key(scope: Scope) -> bool:
    return scope[_KEY_LABEL] is not None


def get_key_label(scope: Scope) -> str:
    """What identifies a request's key without revealing it; empty: it has none."""
    label: str | None = scope[_KEY_LABEL]
    return label or ""


def get_client_secret(scope: Scope) -> ClientSecret | None:
    secret: ClientSecret | None = scope[_SECRET]
    return secret


class KeyMiddleware:
    """401 for a request without a known key, where one is needed. A client secret stands for the
    key that asked for it, for sessions alone."""

    def __init__(
        self, app: ASGIApp, keys: ApiKeys, secrets: ClientSecrets, public_lists: bool
    ) -> None:
        self._app = app
        self._keys = keys
        self._secrets = secrets
        self._public_lists = public_lists

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        shown = list(iterate_shown_keys(scope))
        opens_session = _SESSIONS.fullmatch(_read_path(scope)) is not None
        secrets = [secret for key in shown if (secret := self._secrets.find(key))]
        scope[_SECRET] = secrets[0] if secrets and opens_session else None
        labels = [label for key in shown if (label := self._keys.match(key))]
        if not labels and scope[_SECRET] is not None:
            labels = [scope[_SECRET].owner]
        scope[_KEY_LABEL] = (labels[0] or None) if labels else None
        scope[_TRUSTED] = bool(labels) or not self._keys
        # A session must not begin without the settings that its secret was to bring.
        lost = opens_session and not secrets and any(map(looks_like_secret, shown))
        if (is_trusted(scope) and not lost) or self._is_open(scope):
            await self._app(scope, receive, _agree_to_subprotocol(scope, send))
            return
        await refuse(scope, receive, send, _explain(shown, opens_session=opens_session))

    def _is_open(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] not in _READING:
            return False
        path = _read_path(scope)
        if path in _OPEN:
            return True
        if self._public_lists and (path in _LISTS or path.startswith("/v1/models/")):
            return True
        return not any(path == start or path.startswith(f"{start}/") for start in _GUARDED_READS)


def _explain(shown: list[str], *, opens_session: bool) -> Unauthorized:
    """Why these keys do not suffice."""
    if any(map(looks_like_secret, shown)):
        return Unauthorized(
            "this client secret has expired, or is not known; ask for another one at "
            "/v1/realtime/client_secrets"
            if opens_session
            else "a client secret opens sessions of /v1/realtime alone; send an API key"
        )
    problem = "this API key is not known" if shown else "this server needs an API key"
    return Unauthorized(f"{problem}; send it as Authorization: Bearer <key>")


class KeyPlace:
    """A place among the open requests of one key. Work that outlives its request may keep it."""

    def __init__(self, open_now: Counter[str], key: str) -> None:
        self._open_now = open_now
        self._key = key
        self._kept = False
        open_now[key] += 1

    def keep(self) -> ExitStack:
        """Keep the place until the returned stack is closed, instead of until the request's end."""
        self._kept = True
        held = ExitStack()
        held.callback(self._free)
        return held

    def end_request(self) -> None:
        """Free the place, unless it is kept."""
        if not self._kept:
            self._free()

    def _free(self) -> None:
        self._open_now[self._key] -= 1


def keep_place(scope: Scope) -> ExitStack:
    """Keeps a request's place, if its key has a limit, until what is returned is left."""
    place: KeyPlace | None = scope.get(_PLACE)
    return ExitStack() if place is None else place.keep()


class ConcurrencyMiddleware:
    """429 for a key that has its maximum of requests, WebSockets and calls open. Reading is free,
    and so is what ends work.

    A request counts from the end of its body, so that unfinished bodies cannot lock a key out.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = scope.get(_KEY_LABEL)
        if key is None or _is_free(scope):
            await self._app(scope, receive, send)
            return

        def count() -> None:
            if self._open[key] >= self._limit:
                raise Overloaded(f"this API key already has {self._limit} requests open, its limit")
            scope[_PLACE] = KeyPlace(self._open, key)

        async def receive_counting() -> Message:
            message = await receive()
            whole = message["type"] == "http.request" and not message.get("more_body")
            if whole and _PLACE not in scope:
                count()
            return message

        try:
            if scope["type"] != "http" or not has_body(scope):
                try:
                    count()
                except Overloaded as refusal:
                    await refuse(scope, receive, send, refusal)
                    return
            await self._app(scope, receive_counting, send)
        finally:
            if _PLACE in scope:
                scope[_PLACE].end_request()


class OriginMiddleware:
    """403 for what a page of another site makes a browser send.

    Browsers send some of that without asking the server first: forms, such as an upload, and
    every WebSocket. A page counts as the server's own if its origin equals the requested host.
    """

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = None if _is_harmless(scope) else Headers(scope=scope).get("origin")
        if origin is None or self._may(origin, Headers(scope=scope).get("host", "")):
            await self._app(scope, receive, send)
            return
        refusal = Forbidden(
            f"pages of {origin[:100]!r} may not use this server; "
            "its operator can allow them with --allow-origin"
        )
        await refuse(scope, receive, send, refusal)

    def _may(self, origin: str, host: str) -> bool:
        if origin in self._allowed or ANY_ORIGIN in self._allowed:
            return True
        scheme, separator, its_host = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and its_host.lower() == host.lower()


class HostMiddleware:
    """403 for requests to a name that may not be this machine's, where no key is needed.

    A foreign site can point its own name here (DNS rebinding). Its pages then count as the
    server's own, and browsers let them read every response, but they cannot change the requested
    name. An address, localhost and this machine's name cannot belong to a foreign site.
    """

    def __init__(self, app: ASGIApp, allowed: frozenset[str]) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] == "lifespan"
            or _read_path(scope) in _OPEN
            or self._may(_read_host(scope))
        ):
            await self._app(scope, receive, send)
            return
        refusal = Forbidden(
            f"this server does not answer to the name {_read_host(scope)[:100]!r}; "
            "use its address, or have its operator allow the name with --allow-host"
        )
        await refuse(scope, receive, send, refusal)

    def _may(self, host: str) -> bool:
        if not host or ANY_ORIGIN in self._allowed:
            # A request without a host does not come from a browser.
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._allowed or name.endswith(".localhost") or _is_address(name)


def _is_harmless(scope: Scope) -> bool:
    """Requests that change nothing; without CORS a foreign page cannot read the response."""
    return scope["type"] == "lifespan" or (
        scope["type"] == "http" and scope["method"] in (*_READING, "OPTIONS")
    )


def _is_free(scope: Scope) -> bool:
    """Whether a request needs none of a key's places. A session that is resumed kept its own."""
    if scope["type"] != "http":
        return resumes_session(scope)
    path = _read_path(scope)
    return (
        scope["method"] in (*_READING, "DELETE")
        or path == _CARRIES_CALLS
        or _ENDS_WORK.search(path) is not None
    )


def _list_known_hosts(settings: SecuritySettings) -> frozenset[str]:
    """Names that requests may be addressed to: this machine's and those that were allowed."""
    sites = (urlsplit(site).hostname or site for site in settings.allowed_origins)
    own = ("localhost", socket.gethostname())
    return frozenset(name.lower() for name in (*own, *sites, *settings.allowed_hosts))


def _read_host(scope: Scope) -> str:
    return Headers(scope=scope).get("host", "")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _read_path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _agree_to_subprotocol(scope: Scope, send: Send) -> Send:
    """`send` that agrees to the subprotocol of a WebSocket client which showed its key in one."""
    protocol = choose_subprotocol(scope)
    if protocol is None:
        return send

    async def send_agreeing(message: Message) -> None:
        if message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message = {**message, "subprotocol": protocol}
        await send(message)

    return send_agreeing
