"""Batch mode: hold what a request makes at a port until its end, then pass it on as one chunk."""

from __future__ import annotations

from collections.abc import Iterable

from cantata.contract.data.chunks import Chunk, Payload, concatenate


class ChunkAccumulator:
    """Keeps chunks by request and port until the last one, and joins them into one final chunk with
    index 0."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, list[Chunk[Payload]]]] = {}

    def __len__(self) -> int:
        return sum(len(chunks) for ports in self._held.values() for chunks in ports.values())

    def pass_on(self, chunks: Iterable[Chunk[Payload]]) -> list[Chunk[Payload]]:
        """Take new chunks; returns those that are complete."""
        complete = []
        for chunk in chunks:
            ports = self._held.setdefault(chunk.request_id, {})
            ports.setdefault(chunk.port, []).append(chunk)
            if chunk.final:
                complete.append(concatenate(ports.pop(chunk.port)))
                if not ports:
                    del self._held[chunk.request_id]
        return complete

    def drop(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._held.pop(request_id, None)
