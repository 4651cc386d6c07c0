"""The two ends of an edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from cantata.contract.data.chunks import Chunk, Payload


class ChunkSender(Protocol):
    """The upstream end of an edge."""

    def put(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Hand over the chunks of one step as one message, in order; waits while the edge is full.

        Raises:
            ConnectionError: the other end has closed.
        """
        ...

    def close(self) -> None:
        """End the edge: no chunk follows."""
        ...


class ChunkReceiver(Protocol):
    """The downstream end of an edge."""

    def get(self) -> Sequence[Chunk[Payload]]:
        """Wait for the next message.

        Raises:
            ConnectionError: the other end has closed and nothing is left.
        """
        ...

    def close(self) -> None:
        """Stop receiving."""
        ...
