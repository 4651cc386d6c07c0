"""Addresses of replicas, and the directory that an edge finds them in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol
from urllib.parse import urlsplit

from cantata.contract.data.errors import ConfigError


@dataclass(frozen=True, slots=True, order=True)
class Address:
    host: str
    """A name, or an IPv4 or IPv6 address without brackets."""
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `HOST:PORT`; an IPv6 address stands in brackets. Raises ConfigError: the text is no
        such address."""
        try:
            parts = urlsplit(f"//{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if not host or port is None or parts.netloc != text or "@" in text:
            raise ConfigError(f"{text!r} is not an address: write HOST:PORT, such as 10.0.0.7:8100")
        return cls(host, port)

    @property
    def is_loopback(self) -> bool:
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


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
        yield self._addresses
