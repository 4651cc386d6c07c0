"""The Model Context Protocol at /mcp: assistants speak, listen and draw with this server's models.

The package `mcp` is imported at the first request: that takes most of a second, and most servers
never need it. Requests arrive here after access was checked, as on every route.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cantata.contract.data.errors import NotInstalled

PATH = "/mcp"
_SERVER = "cantata.api.adapters.mcp_server"
_METHODS = ("POST", "DELETE")
_LEFT = "cantata.mcp_left"

Serving = Callable[[int], AbstractAsyncContextManager[ASGIApp]]
"""Serves while it is open; takes the size of the longest body."""


def mount(app: FastAPI, max_body_bytes: int) -> None:
    """Serve MCP at `PATH`. `app.state.mcp` is to be closed when the app stops."""
    endpoint = McpEndpoint(max_body_bytes)
    app.state.mcp = endpoint
    app.router.routes.append(Route(PATH, endpoint, include_in_schema=False))


class McpEndpoint:
    """An ASGI app that starts what serves MCP when the first request comes. `max_body_bytes`: of
    the longest message."""

    def __init__(self, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._starting = asyncio.Lock()
        self._running: asyncio.Task[None] | None = None
        """Serves sessions, which outlive the requests that begin them."""
        self._started: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one message.

        Raises:
            HTTPException: 405 for a stream of the server's own messages: there are none.
            NotInstalled: the package `mcp` is missing, or not version 2.
        """
        if scope["method"] not in _METHODS:
            raise HTTPException(405, headers={"allow": ", ".join(_METHODS)})
        serve = await self._open()
        left = scope[_LEFT] = asyncio.Event()
        body = await _read_body(receive)
        watching = asyncio.create_task(_watch(receive, left), name="cantata:mcp-watch")
        try:
            await serve(scope, _replay(body, watch_disconnect(scope)), send)
        finally:
            watching.cancel()

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _open(self) -> ASGIApp:
        async with self._starting:
            if self._started is None or self._running is None:
                serving = await self._import_serving()
                self._started = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(
                    self._run(serving, self._started), name="cantata:mcp"
                )
        first: set[asyncio.Future[Any]] = {self._started, self._running}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not self._started.done():
            self._running.result()  # raises what kept it from serving
        return self._started.result()

    async def _run(self, serving: Serving, started: asyncio.Future[ASGIApp]) -> None:
        async with serving(self._max_body_bytes) as serve:
            started.set_result(serve)
            await asyncio.Event().wait()

    async def _import_serving(self) -> Serving:
        try:
            module = await asyncio.to_thread(import_module, _SERVER)
        except ImportError as error:
            raise NotInstalled(
                f"MCP needs version 2 of the package mcp ({error}): pip install 'cantata[mcp]'"
            ) from error
        serving: Serving = module.serving
        return serving


async def _read_body(receive: Receive) -> bytes:
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return bytes(body)


async def _watch(receive: Receive, left: asyncio.Event) -> None:
    # The package looks for a client that leaves only where it streams.
    while (await receive())["type"] != "http.disconnect":
        pass
    left.set()


def _replay(body: bytes, after: Receive) -> Receive:
    """The body, once, and then what comes after it."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return unread.pop() if unread else await after()

    return receive


def watch_disconnect(scope: Scope) -> Receive:
    """What `run_until_disconnect` may wait on: it tells when the client of a request has left."""
    left: asyncio.Event = scope[_LEFT]

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    return receive
