"""Gradio's streams of events, while the server stops: those that only say that a page is open end
at once, those that carry results end after them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEARTBEAT = "/gradio_api/heartbeat/"
"""In front of a session's name."""
_RESULTS = "/gradio_api/queue/data"


class Leaving(Protocol):
    """What knows when the server stops."""

    def subscribed(self, leave: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls `leave` when it does, for the time of the block."""


class SessionStreams:
    """Serves the streams of Gradio's sessions. Gradio ends what a session runs when its heartbeat
    ends, so a heartbeat stays until its session waits for no results.

    Args:
        leaving: tells when the server stops.
    """

    def __init__(self, leaving: Leaving) -> None:
        self._leaving = leaving
        self._waiting: Counter[str] = Counter()
        """Streams of results, by session."""
        self._changed = asyncio.Condition()

    async def serve(
        self, app: ASGIApp, path: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request of the app's.

        Args:
            app: Gradio's.
            path: within the app.
            scope: of the request, as are `receive` and `send`.
        """
        if path.startswith(HEARTBEAT):
            await self._send_beats(path.removeprefix(HEARTBEAT), app, scope, receive, send)
        elif path == _RESULTS:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            await self._await_results(query.get("session_hash", [""])[0], app, scope, receive, send)
        else:
            await app(scope, receive, send)

    async def _await_results(
        self, session: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._waiting[session] += 1
        try:
            await app(scope, receive, send)
        finally:
            self._waiting[session] -= 1
            if not self._waiting[session]:
                del self._waiting[session]
            async with self._changed:
                self._changed.notify_all()

    async def _send_beats(
        self, session: str, app: ASGIApp, scope: Scope, receive: Receive, send: Send
    ) -> None:
        left = asyncio.Event()
        body = _Body(send)
        with self._leaving.subscribed(left.set):
            beating = asyncio.create_task(_serve(app, scope, receive, body.send))
            ending = asyncio.create_task(self._wait_until_idle(session, left))
            try:
                await asyncio.wait((beating, ending), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending.cancel()
                beating.cancel()
                await asyncio.wait((beating, ending))
        if beating.cancelled():
            await body.end()
        else:
            await beating  # raises what it raised

    async def _wait_until_idle(self, session: str, left: asyncio.Event) -> None:
        """Until the server stops and the session waits for no results."""
        await left.wait()
        async with self._changed:
            await self._changed.wait_for(lambda: session not in self._waiting)


async def _serve(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


class _Body:
    """A response that can be ended from outside, so that a client sees it as whole."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._open = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._open = True
        elif message["type"] == "http.response.body" and not message.get("more_body", False):
            self._open = False
        await self._send(message)

    async def end(self) -> None:
        if self._open:
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
