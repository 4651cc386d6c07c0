"""Which replicas there are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Protocol

from cantata.distributed.address import Address


class ReplicaDirectory(Protocol):
    """Keeps edges informed of replicas that come and go."""

    def watch(self) -> AsyncIterator[frozenset[Address]]:
        """All replicas there are now, and all again whenever that changes.

        A replica that is no longer in the set gets no new requests; it finishes what it speaks. If
        the iterator ends, its last set remains.
        """
        ...


class StaticDirectory:
    """Replicas that were named once."""

    def __init__(self, addresses: Iterable[Address]) -> None:
        self._addresses = frozenset(addresses)

    async def watch(self) -> AsyncIterator[frozenset[Address]]:
        """The one set."""
        yield self._addresses
