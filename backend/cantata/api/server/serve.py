"""The app behind a socket: uvicorn with the settings that streams need."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from cantata.api.connections.acceptor import raise_descriptor_limit
from cantata.api.connections.http import QuietWebSocket
from cantata.api.connections.server import SpeechServer
from cantata.api.context import ApiContext
from cantata.api.server.lifecycle import Phase
from cantata.utils.low_latency import configure_gc

_PING_INTERVAL_S = 20.0
_PING_TIMEOUT_S = 120.0
"""A ping waits behind sound that a slow client has not read yet, so this is generous."""
_GRACE_S = 1
"""Time for interrupted requests to end, after the time for draining."""
_KEEP_ALIVE_S = 75
"""An idle connection lives this long. Proxies keep theirs for up to a minute (nginx, AWS's load
balancer) and answer 502 if the server closes one while they send a request on it; browsers give up
after a few such tries. When places run out, idle connections make room (`ConnectionGate`)."""
_MAX_HEAD_BYTES = 32 << 10
"""Request line and headers; OpenAI's and browsers' stay below 4 KiB."""


def make_server(app: FastAPI, on_accepting: Callable[[], None] = lambda: None) -> SpeechServer:
    """A server over an app made by `create_app`."""
    context: ApiContext = app.state.context
    return SpeechServer(
        uvicorn.Config(
            app,
            log_config=None,
            # At lower levels it logs addresses with their query and all headers, keys included.
            log_level="warning",
            access_log=False,
            lifespan="on",
            # uvicorn's other parser has no limit on headers. `SpeechServer` makes the
            # connections.
            http="h11",
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            ws=QuietWebSocket,
            ws_max_size=context.settings.max_message_bytes,
            ws_ping_interval=_PING_INTERVAL_S,
            ws_ping_timeout=_PING_TIMEOUT_S,
            # PCM does not compress; trying costs time and memory per connection.
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_keep_alive=_KEEP_ALIVE_S,
        ),
        context.settings.connections,
        context.drain,
        context.lifecycle.settled,
        on_accepting,
    )


async def serve(
    app: FastAPI,
    listener: socket.socket,
    on_ready: Callable[[], None],
    on_accepting: Callable[[], None] = lambda: None,
) -> bool:
    """Serve until a signal ends it.

    Args:
        app: made by `create_app`.
        listener: listens; or is only bound, with `SO_REUSEPORT`, to a port that servers share.
        on_accepting: called once connections are accepted; a page may load, requests may have to
            wait.

    Returns:
        False when the service could not be started, which ends the server at once.
    """
    configure_gc()
    raise_descriptor_limit()
    accepting = asyncio.Event()

    def note() -> None:
        accepting.set()
        on_accepting()

    server = make_server(app, note)
    context: ApiContext = app.state.context
    watching = asyncio.create_task(
        _watch(server, context, accepting, on_ready), name="cantata:watch-start"
    )
    try:
        await server.serve(sockets=[listener])
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return context.lifecycle.error is None


async def _watch(
    server: SpeechServer,
    context: ApiContext,
    accepting: asyncio.Event,
    on_ready: Callable[[], None],
) -> None:
    await context.lifecycle.settled.wait()
    if context.lifecycle.phase is Phase.STARTED:
        await accepting.wait()
        on_ready()
    elif context.lifecycle.phase is Phase.FAILED:
        server.stop()
