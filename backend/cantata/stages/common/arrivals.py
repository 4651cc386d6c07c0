"""What a request waits for: payloads of earlier stages, each whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cantata.contract.data.chunks import Chunk, Payload, concatenate
from cantata.contract.data.errors import ProtocolViolation


class InputCollector:
    """One request's.

    Args:
        ports: of earlier stages that it awaits.
    """

    def __init__(self, ports: Collection[str]) -> None:
        self._chunks: dict[str, list[Chunk[Payload]]] = {port: [] for port in ports}
        self._open = set(ports)

    @property
    def complete(self) -> bool:
        """Whether all of it has arrived."""
        return not self._open

    @property
    def payloads(self) -> Mapping[str, Payload]:
        """The payloads by port, once complete."""
        return {port: concatenate(chunks).payload for port, chunks in self._chunks.items()}

    def take(self, chunk: Chunk[Payload]) -> None:
        """The next chunk of a port.

        Raises:
            ProtocolViolation: the request does not await that port, or the chunk is out of order.
        """
        port = chunk.port
        if port not in self._open:
            awaited = sorted(self._open)
            raise ProtocolViolation(f"unexpected chunk of port {port!r}; awaited: {awaited}")
        if chunk.index != len(self._chunks[port]):
            expected = len(self._chunks[port])
            raise ProtocolViolation(f"expected chunk {expected} of {port!r}, got {chunk.index}")
        self._chunks[port].append(chunk)
        if chunk.final:
            self._open.remove(port)
