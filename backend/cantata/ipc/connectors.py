"""The two ends of an edge between stages: within one process, or between two on one machine.

Between processes it is a Unix socket. The receiving side listens, so that its address is known
before either process runs; the kernel's socket buffer is the bound. Both ends block, neither polls.

Addresses are abstract: they have no file, so nothing is left behind however a server ends. Nor do
they have a file's permissions, so a receiver accepts connections of its own user only.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Sequence
from queue import Queue
from typing import Protocol

from cantata.contract.data.chunks import Chunk, Payload
from cantata.ipc.encoded import EncodedChunks, encode_chunks
from cantata.ipc.wire import BlockingChannel
from cantata.utils.peer_credentials import require_same_uid

logger = logging.getLogger(__name__)


class ChunkSender(Protocol):
    """The upstream end of an edge."""

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Hand over the chunks of one step as one message, in order; waits while the edge is full.
        Raises ConnectionError: the other end has closed."""
        ...

    def close(self) -> None:
        """End the edge: no chunk follows."""
        ...


class ChunkReceiver(Protocol):
    """The downstream end of an edge."""

    def get(self) -> Sequence[Chunk[Payload]]:
        """Wait for the next message. Raises ConnectionError: the other end has closed and nothing
        is left."""
        ...

    def close(self) -> None: ...


class MemoryReceiver(ChunkReceiver):
    """The downstream end of a bounded edge between two threads of one process."""

    def __init__(self, max_messages: int = 256) -> None:
        self._queue: Queue[Sequence[Chunk[Payload]]] = Queue(max_messages)
        self._waiting = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)
        """Counts the messages."""

    def fileno(self) -> int:
        """A descriptor that is readable when a message has arrived."""
        return self._waiting

    def deliver(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Take a message from the other end; waits while the edge is full."""
        self._queue.put(tuple(chunks))
        os.eventfd_write(self._waiting, 1)

    def get(self) -> Sequence[Chunk[Payload]]:
        os.eventfd_read(self._waiting)
        return self._queue.get()

    def close(self) -> None:
        os.close(self._waiting)


class MemorySender(ChunkSender):
    """The upstream end. Its arrays are the receiver's, too: nobody changes what has left."""

    def __init__(self, receiver: MemoryReceiver) -> None:
        self._receiver = receiver

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Hand over one message; waits while the edge is full."""
        self._receiver.deliver(chunks)

    def close(self) -> None:
        """Leave what was not taken to the receiver."""


def make_address(edge: str) -> str:
    """An unused address. `edge`: what it is for; the first part of the name."""
    return f"\0cantata/{edge}/{secrets.token_hex(8)}"


def listen(address: str) -> socket.socket:
    """A listening socket for the downstream end of an edge, to be handed to its process."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen()
    return listener


class SocketSender(ChunkSender):
    """The upstream end; connects when it first has something to send.

    When the process downstream exits, the next message goes to its successor. Chunks of requests
    that ended with the old process are ignored by the new one.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel: BlockingChannel | None = None

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Send one message; waits while the edge is full.

        Raises:
            ConnectionError: the other end has closed.
            TypeError: an array's numbers are not of its payload's kind.
        """
        parts = encode_chunks(chunks)
        try:
            self._connect().send(*parts)
        except ConnectionError:
            logger.warning(
                "edge %s: the process downstream was replaced", self._address.split("/")[1]
            )
            self.close()
            self._connect().send(*parts)

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _connect(self) -> BlockingChannel:
        if self._channel is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(self._address)
            self._channel = BlockingChannel(sock)
        return self._channel


class SocketReceiver(ChunkReceiver):
    """The downstream end, accepted from a listening socket.

    Raises:
        ConnectionError: another user's process connected; it is rejected.
    """

    def __init__(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        require_same_uid(sock)
        self._channel = BlockingChannel(sock)

    def fileno(self) -> int:
        """A descriptor that is readable when a message or the end has arrived."""
        return self._channel.fileno()

    def get(self) -> Sequence[Chunk[Payload]]:
        """Wait for the next message. Raises ConnectionError: the other end has closed
        (`BrokenChannel`: or sent no chunks)."""
        return EncodedChunks.from_local(self._channel.receive()).chunks()

    def close(self) -> None:
        self._channel.close()
