"""The least that a process between clients and a server can do: it passes bytes on.

Beside an edge, it shows what the process alone costs, on a machine whose cores are busy.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import uvloop

_BACKLOG = 128
_END_S = 10.0


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that accepts connections."""

    url: str
    """Of the server behind it."""
    pid: int


@contextmanager
def running_proxy(url: str) -> Iterator[RunningProxy]:
    """A proxy before the server at this address, for the time of the block."""
    behind = urlsplit(url)
    assert behind.hostname is not None
    assert behind.port is not None
    with socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG) as listener:
        where = (behind.hostname, behind.port)
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(listener, where)
        )
        process.start()
        try:
            assert process.pid is not None
            yield RunningProxy(f"http://127.0.0.1:{listener.getsockname()[1]}", process.pid)
        finally:
            process.kill()
            process.join(_END_S)


def _serve(listener: socket.socket, where: tuple[str, int]) -> None:
    async def serve() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _FromClient(where), sock=listener)
        await server.serve_forever()

    uvloop.run(serve())


class _Side(asyncio.Protocol):
    """One connection; what it brings goes to the other one."""

    other: _Side | None = None
    transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _FromClient(_Side):
    def __init__(self, where: tuple[str, int]) -> None:
        self._where = where
        self._early = b""
        """What came before the server was reached."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early += data
        else:
            super().data_received(data)

    async def _connect(self) -> None:
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        try:
            _, side = await loop.create_connection(_Side, *self._where)
        except OSError:
            self.transport.close()
            return
        side.other, self.other = self, side
        super().data_received(self._early)
        if self.transport.is_closing():
            self.connection_lost(None)
