"""Length-prefixed pickles over local stream sockets, blocking or under asyncio.

Both ends are processes of one server that one user started, over sockets that nobody else can
reach, so pickle's trust in its input holds. Never use this on a network.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")


def encode(message: object) -> bytes:
    """One message as it goes over the wire."""
    body = pickle.dumps(message, protocol=5)
    return _LENGTH.pack(len(body)) + body


class BlockingChannel:
    """A stage's end: it owns the socket, sends whole messages and waits for whole messages."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)
        self._socket = sock

    def fileno(self) -> int:
        """For selectors."""
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send, waiting while the other end's buffer is full: the buffer is the bound.

        Raises:
            ConnectionError: the other end is gone.
        """
        self._socket.sendall(encode(message))

    def receive(self) -> Any:
        """The next message.

        Raises:
            ConnectionError: the other end is gone.
        """
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self._socket.recv_into(view)
            if not count:
                raise ConnectionError("the other end closed the connection")
            view = view[count:]
        return data


class AsyncChannel:
    """The api's end, for one reader task and any number of senders."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        # drain() then waits until the kernel has every byte, which orders messages across
        # channels: what was sent first is readable first.
        writer.transport.set_write_buffer_limits(high=0)

    @classmethod
    async def open(cls, sock: socket.socket) -> AsyncChannel:
        """Take over a connected socket."""
        sock.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=sock))

    async def send(self, message: object) -> None:
        """Send, waiting until the other end's kernel buffer holds the message.

        Raises:
            ConnectionError: the other end is gone.
        """
        self._writer.write(encode(message))
        await self._writer.drain()

    async def receive(self) -> Any:
        """The next message.

        Raises:
            ConnectionError: the other end is gone.
        """
        try:
            (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            return pickle.loads(await self._reader.readexactly(length))
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("the other end closed the connection") from error

    async def close(self) -> None:
        """Close the socket."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):  # the other side may have closed it first
            await self._writer.wait_closed()
