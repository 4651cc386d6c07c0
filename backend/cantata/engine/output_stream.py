"""One open request's samples, between the last stage's reader and the api."""

from __future__ import annotations

import asyncio
from typing import Any

from cantata.contract.data.chunks import PcmChunk
from cantata.contract.data.errors import CantataError, ChunkTimeout, RequestFailed
from cantata.contract.data.request import PipelineRequest


class PcmStream:
    """One open request's samples, as they are made.

    Args:
        request: what is spoken.
        deadline_s: silence after which it fails.
    """

    def __init__(self, request: PipelineRequest, deadline_s: float) -> None:
        self.request_id = request.request_id
        self.content: list[Any] = [request.inputs]
        """What the stages were given."""
        self.samples = 0
        """That have arrived, per channel."""
        self.finished = False
        """Every stage has freed the request without an abort."""
        self.lost = False
        """A stage that held the request has died."""
        self.pending_aborts: set[str] = set()
        self.abort_done = asyncio.Event()
        self._deadline_s = deadline_s
        self._next_index = 0
        # Bounded by the last stage's credit, not by the queue.
        self._arrived: asyncio.Queue[PcmChunk | CantataError] = asyncio.Queue()

    def arrive(self, item: PcmChunk | CantataError) -> None:
        """What a stage sent for this request."""
        if isinstance(item, PcmChunk):
            self.samples += len(item.samples)
        self._arrived.put_nowait(item)

    async def next(self) -> PcmChunk:
        """The next chunk.

        Raises:
            ChunkTimeout: nothing came in time.
            CantataError: a stage failed the request.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                item = await self._arrived.get()
        except TimeoutError:
            raise ChunkTimeout(f"no sound for {self._deadline_s:g} s") from None
        if isinstance(item, CantataError):
            raise item
        if item.index != self._next_index:
            raise RequestFailed(f"expected PCM chunk {self._next_index}, got {item.index}")
        self._next_index += 1
        self.finished = item.final
        return item
