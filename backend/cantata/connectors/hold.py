"""Batch mode: hold a request's chunks back until its last one, then pass them on as one."""

from __future__ import annotations

from collections.abc import Iterable

from cantata.contract.data.chunks import Chunk, concatenate


class ChunkHold:
    """Keeps chunks by request; its output has index 0 and is final."""

    def __init__(self) -> None:
        self._held: dict[str, list[Chunk]] = {}

    def __len__(self) -> int:
        return sum(len(chunks) for chunks in self._held.values())

    def pass_on(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Take new chunks in; give the requests back that are now complete."""
        complete = []
        for chunk in chunks:
            held = self._held.setdefault(chunk.request_id, [])
            held.append(chunk)
            if chunk.final:
                complete.append(concatenate(self._held.pop(chunk.request_id)))
        return complete

    def drop(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        self._held.pop(request_id, None)
