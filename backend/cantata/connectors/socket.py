"""An edge between two processes on one machine, over a Unix socket.

The receiving side listens, so that it can be known to everybody before either process runs; the
kernel's socket buffer is the bound. Both ends block, neither polls.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from pathlib import Path

from cantata.connectors.base import ChunkReceiver, ChunkSender
from cantata.connectors.wire import BlockingChannel
from cantata.contract.chunks import Chunk

logger = logging.getLogger(__name__)


def listen(path: Path) -> socket.socket:
    """A listening socket for the downstream end of an edge, to be handed to its process."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    return listener


class SocketSender(ChunkSender):
    """The upstream end; connects when it first has something to send.

    When the process downstream ends, its successor is reached with the very next message. What
    belonged to requests that ended with the old process means nothing to the new one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._channel: BlockingChannel | None = None

    def put(self, chunks: Sequence[Chunk]) -> None:
        """Hand over one message; waits while the edge is full.

        Raises:
            ConnectionError: nobody listens any more.
        """
        message = tuple(chunks)
        try:
            self._connected().send(message)
        except ConnectionError:
            logger.warning("the process behind %s was replaced", self._path.name)
            self.close()
            self._connected().send(message)

    def close(self) -> None:
        """No chunk follows."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _connected(self) -> BlockingChannel:
        if self._channel is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(str(self._path))
            self._channel = BlockingChannel(sock)
        return self._channel


class SocketReceiver(ChunkReceiver):
    """The downstream end, accepted from a listening socket."""

    def __init__(self, listener: socket.socket) -> None:
        sock, _ = listener.accept()
        self._channel = BlockingChannel(sock)

    def fileno(self) -> int:
        """Readable when a message (or the end) is there."""
        return self._channel.fileno()

    def get(self) -> Sequence[Chunk]:
        """The next message; waits for it.

        Raises:
            ConnectionError: the other end is gone.
        """
        chunks: Sequence[Chunk] = self._channel.receive()
        return chunks

    def close(self) -> None:
        """Take nothing more."""
        self._channel.close()
