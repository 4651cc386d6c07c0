"""Calls of the server's own routes for a client of MCP: with its key, in its name, without HTTP
between. So access, limits, admission, errors and records are those of the routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.api.http.request_id import REQUEST_ID_HEADER

MAX_ANSWER_BYTES = 6 << 20
"""Writing one as JSON holds everybody else up, for some 50 ms by then."""
_OWN_HEADERS = (
    *("accept", "accept-encoding", "connection", "content-length", "content-type"),
    *("content-encoding", "expect", "transfer-encoding", "last-event-id", REQUEST_ID_HEADER),
)
"""Of the message that carries a call, not of the call."""
_PROTOCOL = "mcp-"


class AnswerTooLarge(ConnectionError):
    """A route's answer is longer than a message may be; it was ended there.

    WHY a ConnectionError: the route ends its work as for a client that has left.
    """


class CallRefused(Exception):
    """A route's error, as the server words it."""


@dataclass(frozen=True, slots=True)
class RouteAnswer:
    body: bytes
    headers: httpx.Headers

    @property
    def media_type(self) -> str:
        return self.headers["content-type"].partition(";")[0]


async def call_route(
    request: Request,
    method: str,
    path: str,
    *,
    body: Mapping[str, Any] | None = None,
    form: Mapping[str, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    query: Mapping[str, str] | None = None,
) -> RouteAnswer:
    """Call a route as the client of `request`.

    Args:
        body: as JSON. Otherwise `form` and `files`, as in httpx.

    Raises:
        CallRefused: the route's error.
        AnswerTooLarge: there was more than `MAX_ANSWER_BYTES`.
    """
    headers = [(name, value) for name, value in request.headers.items() if _is_clients(name)]
    transport = httpx.ASGITransport(
        _Bounded(request.app),
        client=request.client or ("", 0),
    )
    async with httpx.AsyncClient(
        transport=transport, base_url=str(request.base_url), trust_env=False, timeout=None
    ) as client:
        answered = await client.request(
            method, path, json=body, data=form, files=files, params=query, headers=headers
        )
    if not answered.is_success:
        raise CallRefused(_word_refusal(answered))
    return RouteAnswer(answered.content, answered.headers)


def _is_clients(name: str) -> bool:
    return name not in _OWN_HEADERS and not name.startswith(_PROTOCOL)


def _word_refusal(answered: httpx.Response) -> str:
    message: str = answered.json()["error"]["message"]
    again = answered.headers.get("retry-after")
    return f"{message}; try again in {again} s" if again else message


class _Bounded:
    """An app whose answers are ended where they get too long: they are held in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = MAX_ANSWER_BYTES

        async def send_bounded(message: Message) -> None:
            nonlocal left
            left -= len(message.get("body", b""))
            if left < 0:
                raise AnswerTooLarge
            await send(message)

        await self._app(scope, receive, send_bounded)
