"""Where the time before a request's first sound goes: each stage stamps its first chunk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cantata.contract.data.chunks import Chunk, Milestone, Payload


class FirstChunks:
    """Passes on the milestones of earlier stages and adds this stage's own.

    Args:
        stage: its name.
        ports: its ports.
    """

    def __init__(self, stage: str, ports: Iterable[str]) -> None:
        self._stage = stage
        self._ports = tuple(ports)
        self._before: dict[tuple[str, str], tuple[Milestone, ...]] = {}
        """Of requests and ports whose first chunk has not left."""

    def expect(self, request_id: str) -> None:
        """The stage has accepted this request."""
        for port in self._ports:
            self._before[request_id, port] = ()

    def take(self, chunks: Iterable[Chunk[Payload]]) -> None:
        """Remember the milestones of chunks from upstream, one for each step: a stage with several
        ports sends its own with each."""
        for chunk in chunks:
            for port in self._ports if chunk.milestones else ():
                before = self._before.get((chunk.request_id, port))
                if before is not None:
                    known = {milestone.step for milestone in before}
                    new = tuple(m for m in chunk.milestones if m.step not in known)
                    self._before[chunk.request_id, port] = before + new

    def sign(self, chunks: Iterable[Chunk[Payload]], now_s: float) -> list[Chunk[Payload]]:
        """These chunks leave; a request's first one at each port takes its milestones along."""
        return [self._signed(chunk, now_s) for chunk in chunks]

    def forget(self, request_id: str) -> None:
        """The request is over; unknown ids are fine."""
        for port in self._ports:
            self._before.pop((request_id, port), None)

    def _signed(self, chunk: Chunk[Payload], now_s: float) -> Chunk[Payload]:
        before = self._before.pop((chunk.request_id, chunk.port), None)
        if before is None:
            return chunk
        return replace(chunk, milestones=(*before, Milestone(self._stage, now_s)))
