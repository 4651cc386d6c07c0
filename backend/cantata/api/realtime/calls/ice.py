"""Where a call's media can be reached: the addresses and ports that the answer names.

There is no STUN or TURN server: clients reach this machine, so its own addresses suffice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from aioice import Candidate, Connection
from aioice.candidate import candidate_foundation, candidate_priority
from aioice.ice import StunProtocol
from aiortc import RTCPeerConnection

from cantata.contract.data.errors import Overloaded
from cantata.speech_input.settings import CallSettings

_LOOPBACK = "127.0.0.1"
_COMPONENT = 1
"""RTP and RTCP share it."""


@dataclass(frozen=True, slots=True)
class MediaAddresses:
    """Where to listen for a call's media.

    `loopback`: the client is on this machine, which may have no other address.
    """

    settings: CallSettings
    loopback: bool

    def apply(self, peer: RTCPeerConnection) -> None:
        """Have a peer that knows its offer, and has no answer yet, listen there."""
        for connection in _iterate_connections(peer):
            # aiortc lets nobody choose ports; where candidates come from is one method.
            gathering = _Gathering(connection, self)
            connection.get_component_candidates = gathering.run  # type: ignore[method-assign,assignment]


class _Gathering:
    """Opens the sockets of one ICE connection."""

    def __init__(self, connection: Connection, where: MediaAddresses) -> None:
        self._connection = connection
        self._where = where

    async def run(self, component: int, addresses: Sequence[str]) -> list[Candidate]:
        """The candidates of these addresses of this machine. Raises Overloaded: every port for
        calls is taken."""
        own = [_LOOPBACK] if self._where.loopback else []
        found = [candidate for one in (*own, *addresses) async for candidate in self._open(one)]
        if not found:
            ports = self._where.settings.ports
            raise Overloaded(f"no UDP port for another call is free: {ports or 'of any number'}")
        return found

    async def _open(self, address: str) -> AsyncIterator[Candidate]:
        protocol = await self._bind(address)
        if protocol is None:
            return
        host, port = protocol.transport.get_extra_info("sockname")[:2]
        protocol.local_candidate = _build_candidate(host, port)
        self._connection._protocols.append(protocol)
        yield protocol.local_candidate
        announced = self._where.settings.address
        if announced is not None and ":" not in host and host != _LOOPBACK:
            yield _build_candidate(announced, port)

    async def _bind(self, address: str) -> StunProtocol | None:
        loop = asyncio.get_running_loop()
        for port in _list_ports(self._where.settings):
            try:
                _, protocol = await loop.create_datagram_endpoint(
                    lambda: StunProtocol(self._connection), local_addr=(address, port)
                )
            except OSError:  # taken, or an address that has just gone
                continue
            return protocol
        return None


def _build_candidate(host: str, port: int) -> Candidate:
    return Candidate(
        foundation=candidate_foundation("host", "udp", host),
        component=_COMPONENT,
        transport="udp",
        priority=candidate_priority(_COMPONENT, "host"),
        host=host,
        port=port,
        type="host",
    )


def _list_ports(settings: CallSettings) -> Sequence[int]:
    """Ports to try, in any order; 0: any free one."""
    if settings.ports is None:
        return (0,)
    first, last = settings.ports
    return random.sample(range(first, last + 1), last + 1 - first)


def _iterate_connections(peer: RTCPeerConnection) -> Iterator[Connection]:
    """A peer's ICE connections, each once."""
    dtls = [one.receiver.transport for one in peer.getTransceivers()]
    if peer.sctp is not None:
        dtls.append(peer.sctp.transport)
    for transport in {id(one): one for one in dtls}.values():
        yield transport.transport.iceGatherer._connection
