"""A pipeline's link to one stage host, and the edges on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from cantata.contract.data.errors import StageDied
from cantata.contract.model.pipeline import EdgeSpec
from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey
from cantata.distributed.link.connecting import connect, reconnect_forever
from cantata.distributed.link.errors import LinkLost, ProtocolError, Refused
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.serialization import encode
from cantata.distributed.stages.messages import EdgeName, PipelineCommand, StageFrameKind
from cantata.distributed.stages.transfer import forward_chunks, send_chunks
from cantata.distributed.stages.unix_edges import Take
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.wire import Buffer

logger = logging.getLogger(__name__)


class HostLink:
    """Keeps a link to a host.

    Args:
        there: edges that end at a stage of the host.
        back: edges that start at one.
        on_leaving: called when the host says that it is about to stop.
    """

    def __init__(
        self,
        address: Address,
        key: LinkKey,
        heartbeat: Heartbeat,
        there: Collection[EdgeSpec],
        back: Collection[EdgeSpec],
        take: Callable[[EdgeSpec], Take],
        on_leaving: Callable[[], None],
    ) -> None:
        self.address = address
        self._key, self._heartbeat = key, heartbeat
        self._edges_there, self._edges_back, self._take = there, back, take
        self._on_leaving = on_leaving
        self.is_leaving = False
        """The host has said that it is about to stop."""
        self._link: Link | None = None
        self._there: dict[EdgeSpec, LinkStream] = {}
        self._news = asyncio.Event()
        self._refused: Refused | None = None
        self.trouble = "not connected yet"
        """Why there is no link."""

    async def linked(self) -> None:
        """Return once there is a link."""
        while self._link is None:
            self._news.clear()
            await self._news.wait()

    async def link(self) -> Link:
        """The link, once there is one. Raises StageDied: the host refuses this server until an
        operator changes something."""
        while self._link is None or self._link.is_lost:
            if self._refused is not None:
                raise StageDied(f"stage host {self._refused.reason}")
            self._news.clear()
            await self._news.wait()
        return self._link

    def disconnect_draining(self) -> None:
        """End the link if the host is about to stop."""
        if self.is_leaving and self._link is not None:
            self._link.close("the host is about to stop")

    def _hear(self, kind: int, _: bytearray) -> None:
        if kind != StageFrameKind.LEAVING:
            raise ProtocolError(f"a frame of kind {kind} arrived on no stream")
        logger.info("stage host %s is about to stop", self.address)
        self.is_leaving = True
        self._on_leaving()

    async def put(self, edge: EdgeSpec, encoded: EncodedChunks) -> None:
        """Send chunks to a stage there, once there is credit for them. Without a link they are
        dropped: their requests have failed with it."""
        stream = self._there.get(edge)
        if stream is not None:
            with suppress(LinkLost):
                await send_chunks(stream, encoded)

    async def keep(self, command: PipelineCommand) -> None:
        """Connect, and reconnect whenever the link is lost, until cancelled."""
        await reconnect_forever(partial(self._connect_once, encode(command)), self._on_loss)

    def _on_loss(self, error: LinkLost) -> None:
        if error.reason != self.trouble:
            logger.warning("stage host %s", error.reason)
        self.trouble = error.reason
        self._refused = error if isinstance(error, Refused) else None
        self._news.set()

    async def _connect_once(self, command: tuple[Buffer, ...]) -> LinkLost:
        """Connect once; return why the link was lost, once it is. Raises LinkLost: there is no
        link."""
        sock = await connect(self.address, self._key)
        address = str(self.address)
        link = Link(sock, LinkSide.CONNECTED, self._heartbeat, address, on_message=self._hear)
        self.is_leaving = False
        link.begin()
        forwarding: list[asyncio.Task[None]] = []
        try:
            link.message(StageFrameKind.PIPELINE, *command)
            for edge in self._edges_there:
                self._there[edge] = _open_stream(link, StageFrameKind.EDGE_THERE, edge)
            for edge in self._edges_back:
                stream = _open_stream(link, StageFrameKind.EDGE_BACK, edge)
                forwarding.append(asyncio.create_task(_forward_chunks(stream, self._take(edge))))
            self._link, self._refused = link, None
            self._news.set()
            logger.info("stage host %s: connected", self.address)
            return await link.wait_until_lost()
        finally:
            link.close()
            self._link = None
            self._there.clear()
            for task in forwarding:
                task.cancel()
            await asyncio.gather(*forwarding, return_exceptions=True)


def _open_stream(link: Link, kind: StageFrameKind, edge: EdgeSpec) -> LinkStream:
    stream = link.open()
    stream.post(kind, *encode(EdgeName(edge.source, edge.target)))
    return stream


async def _forward_chunks(stream: LinkStream, take: Take) -> None:
    with suppress(LinkLost):  # whoever has a stage there gets the error
        await forward_chunks(stream, take)
