"""Length-prefixed messages over local stream sockets, blocking or under asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct

Buffer = bytes | bytearray | memoryview
_HEADER = struct.Struct("!4sI")
_MAGIC = b"CnTa"
_MAX_BYTES = 1 << 30
"""Largest message; the largest carry a speaker's recording, some megabytes."""


class BrokenChannel(ConnectionError):
    """The received bytes are not a message. Nothing after them can be read either."""


def _frame(*parts: Buffer) -> bytes:
    return b"".join((_HEADER.pack(_MAGIC, sum(map(len, parts))), *parts))


def _decode_body_length(header: bytes | bytearray) -> int:
    magic, length = _HEADER.unpack(header)
    if magic != _MAGIC or length > _MAX_BYTES:
        raise BrokenChannel(f"received bytes that are not a message: {bytes(header)!r}")
    return int(length)


class BlockingChannel:
    """A stage's end: it owns the socket, sends whole messages and waits for whole messages."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(True)
        self._socket = sock

    def fileno(self) -> int:
        """The socket's descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, *parts: Buffer) -> None:
        """Send one message, waiting while the other end's buffer is full: the buffer is the bound.
        Raises ConnectionError: the other end has closed."""
        self._socket.sendall(_frame(*parts))

    def receive(self) -> bytearray:
        """Wait for the next message. Raises ConnectionError: the other end has closed
        (`BrokenChannel`: or sent no message)."""
        return self._read(_decode_body_length(self._read(_HEADER.size)))

    def close(self) -> None:
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

    async def send(self, *parts: Buffer) -> None:
        """Send one message, waiting until the other end's kernel buffer holds it. Raises
        ConnectionError: the other end has closed."""
        self._writer.write(_frame(*parts))
        await self._writer.drain()

    async def receive(self) -> bytes:
        """Wait for the next message. Raises ConnectionError: the other end has closed
        (`BrokenChannel`: or sent no message)."""
        try:
            length = _decode_body_length(await self._reader.readexactly(_HEADER.size))
            return await self._reader.readexactly(length)
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("the other end closed the connection") from error

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):  # the other side may have closed it first
            await self._writer.wait_closed()
