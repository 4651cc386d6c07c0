"""The server's shutdown: running utterances finish, new requests are rejected."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.api.errors import refuse
from cantata.api.server.lifecycle import NotReady

_STILL_ANSWERED = ("/health", "/ready", "/metrics")
_LATE_S = 5.0
"""A connection that begins after the others have been notified is notified after this long."""


class GoingAway(NotReady):
    """The server is stopping; another one, or this one after its restart, takes the request."""

    code = "going_away"

    def __init__(self) -> None:
        super().__init__("the server is stopping; connect again in a moment")


class Drain:
    """Whether the server is stopping, and the connections that must be notified."""

    def __init__(self) -> None:
        self.started = False
        """Every connection closes after its response."""
        self.rejects = True
        """New requests are rejected from then on. False: another server gets new connections, and
        what still arrives here is served."""
        self._announced = False
        self._connections: set[Callable[[], None]] = set()

    @property
    def connections(self) -> int:
        """Open connections among those to be notified."""
        return len(self._connections)

    def begin(self) -> None:
        """Close connections after their responses from now on; safe in a signal handler."""
        self.started = True

    def announce(self) -> None:
        """Notify every connection, once."""
        self.started = self._announced = True
        for leave in tuple(self._connections):
            leave()

    @contextmanager
    def subscribed(self, leave: Callable[[], None]) -> Iterator[None]:
        """Have a connection notified for the time of the block. `leave`: notifies the client, and
        lets the connection end after what it speaks."""
        self._connections.add(leave)
        late: asyncio.TimerHandle | None = None
        if self._announced:
            late = asyncio.get_running_loop().call_later(_LATE_S, leave)
        try:
            yield
        finally:
            self._connections.discard(leave)
            if late is not None:
                late.cancel()


class DrainMiddleware:
    """Closes each connection after its response while the server stops; 503 for new requests,
    unless another server gets those."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._drain.started or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        still_answered = scope["type"] == "http" and scope["path"] in _STILL_ANSWERED
        if still_answered or not self._drain.rejects:
            await self._app(scope, receive, send_closing)
        else:
            await refuse(scope, receive, send_closing, GoingAway())
