"""The ends of an edge at a stage process on this machine, held by a relaying process.

A relay passes messages on as they are encoded; only stages need their chunks.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from cantata.ipc.encoded import EncodedChunks
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
                await (await self._connected()).send(*encoded.parts)
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

    async def _connected(self) -> AsyncChannel:
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
