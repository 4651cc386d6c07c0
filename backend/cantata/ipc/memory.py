"""An edge inside one process, for tests and for stages that share a thread."""

from __future__ import annotations

from collections.abc import Sequence
from queue import Empty, Queue

from cantata.contract.data.chunks import Chunk, Payload
from cantata.ipc.base import ChunkReceiver, ChunkSender


class MemoryConnector(ChunkSender, ChunkReceiver):
    """Both ends of a bounded edge."""

    def __init__(self, max_messages: int = 256) -> None:
        self._queue: Queue[Sequence[Chunk[Payload]]] = Queue(max_messages)

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Hand over one message; waits while the edge is full."""
        self._queue.put(tuple(chunks))

    def get(self) -> Sequence[Chunk[Payload]]:
        """Wait for the next message."""
        return self._queue.get()

    def get_ready(self) -> Sequence[Chunk[Payload]]:
        """The next message, or no chunks if there is none."""
        try:
            return self._queue.get_nowait()
        except Empty:
            return ()

    def close(self) -> None:
        """Drop what was not taken."""
        while self.get_ready():
            pass
