"""How a stage takes a request in: a slot for it, and earlier stages' payloads, each whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cantata.contract.data.chunks import Chunk, Payload, concatenate
from cantata.contract.data.errors import Overloaded, ProtocolViolation
from cantata.contract.data.request import StageInput


def check_slot(
    request_id: str, payload: StageInput | None, held: Collection[str], slots: int
) -> StageInput:
    """Return the input of a request that may have a slot.

    Raises:
        ProtocolViolation: the id is in use, or there is no input.
        Overloaded: every slot is taken.
    """
    if request_id in held or payload is None:
        raise ProtocolViolation(f"request {request_id!r} is held already, or has no input")
    if len(held) >= slots:
        raise Overloaded(f"all {slots} slots are taken")
    return payload


class InputCollector:
    """Collects one request's payloads from earlier stages. `ports`: of earlier stages that it
    awaits."""

    def __init__(self, ports: Collection[str]) -> None:
        self._chunks: dict[str, list[Chunk[Payload]]] = {port: [] for port in ports}
        self._open = set(ports)

    @property
    def complete(self) -> bool:
        return not self._open

    @property
    def payloads(self) -> Mapping[str, Payload]:
        """The payloads by port, once complete."""
        return {port: concatenate(chunks).payload for port, chunks in self._chunks.items()}

    def take(self, chunk: Chunk[Payload]) -> None:
        """The next chunk of a port. Raises ProtocolViolation: the request does not await that port,
        or the chunk is out of order."""
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
