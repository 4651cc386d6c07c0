"""Holds chunks that arrive before their request is registered.

On one machine a request is registered with every stage before any chunk of it is made, and the
kernel keeps that order. Over a link, what registers a request and what carries its chunks are two
streams, so a chunk may come first. It waits here, without holding up chunks of other requests.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial

from cantata.contract.data.chunks import Chunk, Payload
from cantata.distributed.stages.local_ends import Take
from cantata.ipc.encoded import EncodedChunks, Heads

MAX_WAIT_S = 2.0
"""Longest wait; then a chunk is passed on, and the stage drops it unless it knows its request."""
MAX_PARKED = 1024
"""Chunks of one edge; beyond that, those that have waited longest are passed on at once."""
_REMEMBERED = 4096
"""Requests whose registration is remembered after their last chunk."""


class EarlyChunkBuffer:
    """In front of one edge's end at its stage.

    Args:
        take: passes chunks on to the stage.
    """

    def __init__(self, take: Take) -> None:
        self._take = take
        self._known: OrderedDict[str, None] = OrderedDict()
        self._parked: dict[str, list[Chunk[Payload]]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._passing = asyncio.Lock()
        """Held while chunks are passed on, so that they stay in order."""
        self._releasing: set[asyncio.Task[None]] = set()

    @property
    def parked(self) -> int:
        """Chunks that wait."""
        return sum(map(len, self._parked.values()))

    def registered(self, request_id: str) -> None:
        """The stage can read the request's registration before anything that is passed on now."""
        self._remember(request_id)
        self._release(request_id)

    async def put(self, encoded: EncodedChunks) -> None:
        """Pass on those whose request is registered; waits while the stage has no room.

        Raises:
            BrokenChannel: these are no chunks.
        """
        heads = encoded.heads()
        async with self._passing:
            if self._all_known(heads):
                await self._take(encoded)
                return
            ready = [chunk for chunk in encoded.chunks() if not self._is_parked(chunk)]
            if ready:
                await self._take(EncodedChunks.of(ready))

    def close(self) -> None:
        """Forget everything."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._releasing:
            task.cancel()
        self._parked.clear()

    def _all_known(self, heads: Heads) -> bool:
        """Whether every chunk may go on; their requests stay in mind."""
        for request_id in heads.request_ids:
            if request_id in self._parked or request_id not in self._known:
                return False
            self._known.move_to_end(request_id)
        return True

    def _is_parked(self, chunk: Chunk[Payload]) -> bool:
        request_id = chunk.request_id
        if request_id not in self._parked:
            if request_id in self._known:
                return False
            self._parked[request_id] = []
            loop = asyncio.get_running_loop()
            due = partial(self.registered, request_id)
            self._timers[request_id] = loop.call_later(MAX_WAIT_S, due)
        self._parked[request_id].append(chunk)
        if self.parked > MAX_PARKED and self._timers:
            self.registered(next(iter(self._timers)))
        return True

    def _remember(self, request_id: str) -> None:
        self._known[request_id] = None
        self._known.move_to_end(request_id)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _release(self, request_id: str) -> None:
        timer = self._timers.pop(request_id, None)
        if timer is not None:
            timer.cancel()
            task = asyncio.create_task(self._pass_on(request_id))
            self._releasing.add(task)
            task.add_done_callback(self._releasing.discard)

    async def _pass_on(self, request_id: str) -> None:
        async with self._passing:
            chunks: Sequence[Chunk[Payload]] = self._parked.pop(request_id, ())
            if chunks:
                await self._take(EncodedChunks.of(chunks))
