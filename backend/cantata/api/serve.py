"""The app behind a socket: uvicorn with the settings that streams need."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from cantata.api.context import ApiContext
from cantata.api.lifecycle import Phase

_BACKLOG = 128
_SEND_BUFFER_BYTES = 256 << 10
_UNREAD_MS = 180_000
"""After which the kernel ends a connection whose client takes nothing: closing one, asyncio waits
until all is sent, for ever."""
_PING_INTERVAL_S = 20.0
_PING_TIMEOUT_S = 120.0
"""A ping waits behind the sound that a slow listener has not read yet, so this is generous."""
_GRACE_S = 5
_MAX_HEAD_BYTES = 32 << 10
"""Request line and headers; OpenAI's and browsers' stay below 4 KiB."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    The kernel would buffer megabytes for a listener that does not read: minutes of speech that a
    cancel can't call back. Its buffer is kept small, so that the utterance is held back instead.

    Raises:
        OSError: the address is taken, unknown or not ours.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # WHY the protocol: asyncio sends small packets at once only where a socket tells that it is
    # TCP's; else the kernel waits for the client to acknowledge the one before, up to 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def url_of(listener: socket.socket) -> str:
    """Where a browser finds it; a wildcard address is shown as this machine's own."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def make_server(app: FastAPI) -> uvicorn.Server:
    """A uvicorn server over an app made by `create_app`."""
    context: ApiContext = app.state.context
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            # Below this it writes addresses with their query and all headers, keys included.
            log_level="warning",
            access_log=False,
            lifespan="on",
            # The other parser that uvicorn knows has no limit on headers.
            http="h11",
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            ws_max_size=context.settings.max_message_bytes,
            ws_ping_interval=_PING_INTERVAL_S,
            ws_ping_timeout=_PING_TIMEOUT_S,
            # PCM does not compress; trying costs time and memory per connection.
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


async def serve(app: FastAPI, listener: socket.socket, on_ready: Callable[[], None]) -> bool:
    """Serve until a signal ends it.

    Returns:
        False when the service could not be started, which ends the server at once.
    """
    # WHY: what is loaded by now stays, and to look through it for garbage holds up every stream for
    # a quarter of a second, whenever enough objects have outlived their requests.
    gc.freeze()
    server = make_server(app)
    context: ApiContext = app.state.context
    watching = asyncio.create_task(_watch(server, context, on_ready), name="cantata:watch-start")
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return context.lifecycle.error is None


async def _watch(server: uvicorn.Server, context: ApiContext, on_ready: Callable[[], None]) -> None:
    await context.lifecycle.settled.wait()
    if context.lifecycle.phase is Phase.STARTED:
        on_ready()
    elif context.lifecycle.phase is Phase.FAILED:
        server.should_exit = True
