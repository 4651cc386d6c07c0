"""The ends of an edge at a stage process on this machine, held by a relaying process.

A relay passes messages on as they are encoded; only stages need their chunks. On one machine a
request is registered with every stage before any chunk of it is made, and the kernel keeps that
order. Over a link, what registers a request and what carries its chunks are two streams, so a chunk
may come first. It waits in an `EarlyChunkBuffer`, without holding up chunks of other requests.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from cantata.contract.data.chunks import Chunk, Payload
from cantata.ipc.encoded import EncodedChunks, Heads
from cantata.ipc.wire import AsyncChannel
from cantata.utils.peer_credentials import require_same_uid

logger = logging.getLogger(__name__)

Take = Callable[[EncodedChunks], Awaitable[None]]
"""Passes one message on; waits while there is no room for it."""


async def relay_from(listener: socket.socket, take: Take) -> None:
    """Pass on what the stage upstream and its successors send, until cancelled.

    Args:
        listener: to which it connects; its owner closes it.
        take: gets each message, in order.
    """
    listener.setblocking(False)
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        while True:
            sock, _ = await loop.sock_accept(listener)
            try:
                require_same_uid(sock)
            except ConnectionError as error:
                logger.warning("%s", error)
            else:
                group.create_task(_relay(sock, take))


async def _relay(sock: socket.socket, take: Take) -> None:
    channel = await AsyncChannel.open(sock)
    try:
        while True:
            await take(EncodedChunks.from_local(await channel.receive()))
    except ConnectionError as error:  # the stage exited; its successor connects again
        logger.debug("an edge was closed: %s", error)
    finally:
        await channel.close()


class UnixEdgeWriter:
    """Hands messages to the stage downstream; connects when it first has one.

    When that process exits, the next message goes to its successor, which ignores chunks of
    requests that ended with the old one.

    Args:
        address: of the Unix socket on which it listens.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._channel: AsyncChannel | None = None

    async def put(self, encoded: EncodedChunks) -> None:
        """Hand over one message; waits while the edge is full.

        What two processes in turn do not take is dropped: its requests have ended with them, and
        the edge goes on.
        """
        error: OSError | None = None
        for _ in range(2):
            try:
                await (await self._connect()).send(*encoded.parts)
                return
            except OSError as problem:  # of the connection, or there is no descriptor for one
                error = problem
                await self.close()
        logger.warning("chunks that no stage took were dropped: %s", error)

    async def close(self) -> None:
        """No message follows."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _connect(self) -> AsyncChannel:
        if self._channel is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await asyncio.get_running_loop().sock_connect(sock, self._address)
                self._channel = await AsyncChannel.open(sock)
            except BaseException:
                sock.close()
                raise
        return self._channel


MAX_WAIT_S = 2.0
"""Longest wait; then a chunk is passed on, and the stage drops it unless it knows its request."""
MAX_PARKED = 1024
"""Chunks of one edge; beyond that, those that have waited longest are passed on at once."""
_REMEMBERED = 4096
"""Requests whose registration is remembered after their last chunk."""


class EarlyChunkBuffer:
    """Stands before one edge's end at its stage."""

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
        """Pass on those whose request is registered; waits while the stage has no room. Raises
        BrokenChannel: these are no chunks."""
        heads = encoded.heads()
        async with self._passing:
            if self._knows_all(heads):
                await self._take(encoded)
                return
            ready = [chunk for chunk in encoded.chunks() if not self._is_parked(chunk)]
            if ready:
                await self._take(EncodedChunks.of(ready))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        for task in self._releasing:
            task.cancel()
        self._parked.clear()

    def _knows_all(self, heads: Heads) -> bool:
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
