"""Requests as clients write them: doubled and trailing slashes, HEAD, Azure's prefixes.

Plain ASGI around everything that looks at a path or a method, access checks included, so that all
of them see the same request.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_API = re.compile(r"/(?:v1|v2|openai|mcp|health|ready|metrics|docs|openapi\.json)(?:/|\Z)")
"""Other paths are pages, whose files may have any name."""
_SLASHES = re.compile(r"/{2,}")
_AZURE = re.compile(r"/openai/v1/|/openai/(?=(?:models|realtime)(?:/|\Z))")
"""In front of paths without a deployment. The older API names that of a session in its query."""
_DEPLOYMENT = re.compile(r"/openai/deployments/[^/]+/")
REALTIME_PATH = "/v1/realtime"


class RequestLineMiddleware:
    """Brings a request's path and method into the form in which routes are written."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = normalize_path(scope["path"])
        if path != scope["path"]:
            scope = {**scope, "path": path, "raw_path": path.encode()}
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _drop_body(send)
        await self._app(scope, receive, send)


def normalize_path(path: str) -> str:
    """A path of the API without doubled and trailing slashes; any other path as it is."""
    plain = _SLASHES.sub("/", path)
    if not _API.match(plain):
        return "/" if plain == "/" else path
    found = _AZURE.match(plain)
    if found is not None:
        plain = "/v1/" + plain[found.end() :]
    return plain.rstrip("/")


def to_openai_path(path: str) -> str:
    """The route of OpenAI's API that a route of an Azure deployment is; any other path as it is.
    For what depends on the route alone, such as limits."""
    found = _DEPLOYMENT.match(path)
    return path if found is None else "/v1/" + path[found.end() :]


def resumes_session(handshake: Scope) -> bool:
    """Whether a WebSocket's client comes back to a session that was admitted before, or says so:
    it is refused if there is none."""
    if normalize_path(handshake["path"]) != REALTIME_PATH:
        return False
    return "resume" in parse_qs(handshake["query_string"].decode("latin-1"))


def _drop_body(send: Send) -> Send:
    """A response's head as of GET; its body is dropped."""

    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
