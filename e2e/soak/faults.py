"""Faults that can be injected into a running server from outside, without its help."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

from .watching import Watch

_CONNECTIONS = 64
_FEW_DESCRIPTORS = 8
_PRESSURE_S = 5.0
_HALVES = (
    b"",
    b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-",
    b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b'content-length: 4000\r\n\r\n{"input": "half',
    b"GET /v1/audio/speech/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n",
)
_BODY = b'{"input": "Nobody will hear the end of this sentence, however long it is.", ' + (
    b'"response_format": "pcm"}'
)
_WHOLE = (
    b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n" % len(_BODY) + _BODY
)
_RESET = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""SO_LINGER with no time: closing sends RST."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server and the targets of its faults."""

    url: str
    pid: int
    watch: Watch


Inject = Callable[[Target], Awaitable[None]]


def _signal(stage: str, number: signal.Signals) -> Inject:
    async def inject(target: Target) -> None:
        os.kill((await target.watch.stages())[stage], number)

    return inject


@asynccontextmanager
async def _connected(target: Target, count: int) -> AsyncIterator[list[socket.socket]]:
    address = urlsplit(target.url)
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        plugs = []
        for _ in range(count):
            plug = stack.enter_context(socket.socket())
            plug.setblocking(False)
            async with asyncio.timeout(10):
                await loop.sock_connect(plug, (address.hostname, address.port))
            plugs.append(plug)
        yield plugs


async def half_sent(target: Target) -> None:
    """Requests that are never finished: nothing, half a head, half a body, half an upgrade."""
    async with _connected(target, _CONNECTIONS) as plugs:
        for number, plug in enumerate(plugs):
            plug.send(_HALVES[number % len(_HALVES)])
        await asyncio.sleep(_PRESSURE_S)


async def clients_gone(target: Target) -> None:
    """Clients ask for speech and are cut off."""
    async with _connected(target, 8) as plugs:
        for plug in plugs:
            plug.send(_WHOLE)
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        await asyncio.sleep(0.5)


async def garbage(target: Target) -> None:
    """Bytes that are not a request."""
    async with _connected(target, 8) as plugs:
        for plug in plugs:
            plug.send(os.urandom(4096))
        await asyncio.sleep(0.5)


async def few_descriptors(target: Target) -> None:
    """Limit the server to a few more descriptors while many clients connect."""
    process = psutil.Process(target.pid)
    usual = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + _FEW_DESCRIPTORS, usual[1]))
    try:
        async with _connected(target, _CONNECTIONS):
            await asyncio.sleep(_PRESSURE_S)
    finally:
        process.rlimit(psutil.RLIMIT_NOFILE, usual)


FAULTS: Mapping[str, Inject] = {
    "talker killed": _signal("talker", signal.SIGKILL),
    "decoder killed": _signal("decoder", signal.SIGKILL),
    "talker stopped": _signal("talker", signal.SIGSTOP),
    "decoder stopped": _signal("decoder", signal.SIGSTOP),
    "half-sent requests": half_sent,
    "clients gone": clients_gone,
    "garbage for a request": garbage,
    "few descriptors": few_descriptors,
}
STAGE_FAULTS = frozenset(name for name in FAULTS if name.endswith(("killed", "stopped")))
"""Faults that end the streams of their pipeline; the others end none."""
ENTRY_FAULTS = frozenset({"few descriptors"})
"""Faults that may cause new requests to be rejected meanwhile."""
