"""The two ends of an edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cantata.contract.data.chunks import Chunk, Payload


class ChunkSender(Protocol):
    """The upstream end."""

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Hand over the chunks of one step as one message, in order; waits while the edge is full.

        Raises:
            ConnectionError: the other end has closed.
        """
        ...

    def close(self) -> None:
        """No chunk follows."""
        ...


class ChunkReceiver(Protocol):
    """The downstream end."""

    def get(self) -> Sequence[Chunk[Payload]]:
        """The next message; waits for it.

        Raises:
            ConnectionError: the other end has closed and nothing is left.
        """
        ...

    def close(self) -> None:
        """Receive nothing more."""
        ...
