"""Where the time before a request's first sound goes: each stage stamps its first chunk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cantata.contract.data.chunks import Chunk, Milestone


class FirstChunks:
    """Passes on the milestones of earlier stages and adds this stage's own.

    Args:
        stage: its name.
    """

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._before: dict[str, tuple[Milestone, ...]] = {}
        """Of requests whose first chunk has not left."""

    def expect(self, request_id: str) -> None:
        """The stage has accepted this request."""
        self._before[request_id] = ()

    def take(self, chunks: Iterable[Chunk]) -> None:
        """Remember the milestones of chunks from upstream."""
        for chunk in chunks:
            if chunk.milestones and chunk.request_id in self._before:
                self._before[chunk.request_id] += chunk.milestones

    def sign(self, chunks: Iterable[Chunk], now_s: float) -> list[Chunk]:
        """These chunks leave; a request's first one takes its milestones along."""
        return [self._signed(chunk, now_s) for chunk in chunks]

    def forget(self, request_id: str) -> None:
        """The request is over; unknown ids are fine."""
        self._before.pop(request_id, None)

    def _signed(self, chunk: Chunk, now_s: float) -> Chunk:
        before = self._before.pop(chunk.request_id, None)
        if before is None:
            return chunk
        return replace(chunk, milestones=(*before, Milestone(self._stage, now_s)))
