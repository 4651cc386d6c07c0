"""A realtime session that outlives its connections, as long as the server keeps it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlencode

import websockets.asyncio.client as sockets
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from cantata.client.speech import ServerError, authorization, server_error

LOST, RESUMED = "connection.lost", "session.resumed"
"""Types of events: this module's own, and the server's."""
_PATH = "/v1/realtime"
_KEPT_BYTES = 4 * 2**20
"""Of what was sent, the last: a minute of sound, twice what the server waits for."""
_RETRY_S = 0.5
_HTTP_ERROR = 500
"""Statuses from here on pass."""


class ReconnectingSocket:
    """One session with the server at this HTTP address; `connect` before all else.

    Args:
        server: such as `http://127.0.0.1:8000`.
        model: that speaks or answers; None: the server's first.
    """

    def __init__(self, server: str, model: str | None, api_key: str | None) -> None:
        self._server = server
        self._query = {"resumable": "true"} | ({} if model is None else {"model": model})
        self._headers = authorization(api_key)
        self._socket: sockets.ClientConnection | None = None
        self._is_open = False
        """Whether what is sent goes out at once."""
        self._token: str | None = None
        self._patience_s = 0.0
        self._last_event = ""
        self._kept = deque[str]()
        """Messages that the server may have to get again."""
        self._kept_bytes = 0
        self._first = 0
        """Number of the first one."""
        self._next = 0
        """Number of the first message that this connection has not taken."""
        self._sending = asyncio.Lock()

    async def connect(self) -> None:
        """Begin the session. Raises ServerError: the server cannot be reached, or refuses the
        connection."""
        try:
            self._socket = await self._dial(self._query)
        except InvalidStatus as error:
            raise _build_error(self._server, error) from error
        except (OSError, TimeoutError, InvalidURI, InvalidHandshake) as error:
            raise ServerError(f"{self._server}: {error}") from error
        self._is_open = True

    async def close(self) -> None:
        if self._socket is not None:
            await self._socket.close()

    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event. While the connection is lost, it waits. Raises ServerError: the server has
        ended the session."""
        message = json.dumps({"type": kind, **fields})
        self._kept.append(message)
        self._kept_bytes += len(message)
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popleft())
            self._first += 1
        await self._flush()

    async def receive(self) -> AsyncGenerator[dict[str, Any]]:
        """The server's events, and one of the type `LOST` when a connection is. Raises ServerError:
        the session has ended, or the server did not come back in time."""
        while True:
            assert self._socket is not None
            try:
                async for message in self._socket:
                    event = json.loads(message)
                    await self._note(event)
                    yield event
                return
            except ConnectionClosed as error:
                self._is_open = False
                if error.rcvd is not None or self._token is None:
                    raise ServerError(f"the conversation broke off ({error})") from error
            yield {"type": LOST}
            await self._return()

    async def _note(self, event: dict[str, Any]) -> None:
        self._last_event = event.get("event_id", self._last_event)
        if event["type"] == "session.created" and "resume" in event:
            self._token = event["resume"]["token"]
            self._patience_s = event["resume"]["seconds"]
        elif event["type"] == RESUMED:
            if event["received"] < self._first:
                raise ServerError("the conversation broke off: too much was said meanwhile")
            self._next, self._is_open = event["received"], True
            await self._flush()

    async def _flush(self) -> None:
        """Send what this connection has not taken, in order."""
        async with self._sending:
            while self._is_open and self._next < self._first + len(self._kept):
                assert self._socket is not None
                message = self._kept[max(0, self._next - self._first)]
                self._next = max(self._next, self._first) + 1
                try:
                    await self._socket.send(message)
                except ConnectionClosed as error:
                    self._is_open = False
                    if error.rcvd is not None or self._token is None:
                        raise ServerError(f"the conversation broke off ({error})") from error

    async def _return(self) -> None:
        """Connect again, until the server has given the session up."""
        assert self._token is not None
        query = {"resume": self._token, "after": self._last_event}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    self._socket = await self._dial(query)
                return
            except InvalidStatus as error:
                if error.response.status_code < _HTTP_ERROR:
                    raise _build_error(self._server, error) from error
                failure: Exception = error
            except (OSError, TimeoutError, InvalidHandshake) as error:
                failure = error
            if loop.time() + _RETRY_S > deadline:
                raise ServerError(f"the conversation broke off ({failure})") from failure
            await asyncio.sleep(_RETRY_S)

    async def _dial(self, query: dict[str, str]) -> sockets.ClientConnection:
        address = f"ws{self._server.removeprefix('http').rstrip('/')}{_PATH}?{urlencode(query)}"
        return await sockets.connect(
            address, compression=None, additional_headers=self._headers, max_size=None
        )


def _build_error(server: str, error: InvalidStatus) -> ServerError:
    """The server's own words, where it has any."""
    try:
        return server_error(json.loads(error.response.body or b""))
    except (ValueError, KeyError, TypeError):
        return ServerError(f"{server}: {error}")
