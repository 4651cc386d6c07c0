"""Connections that become links: each is accepted, exchanges hellos and is served independently."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

from cantata.contract.data.errors import ConfigError
from cantata.distributed.address import Address
from cantata.distributed.key import LinkKey
from cantata.distributed.link.connecting import HELLO_S, shake_hands
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.tls import LinkSocket

logger = logging.getLogger(__name__)

MAX_STRANGERS = 64
"""Connections at the same time whose hello is not over. One more ends the oldest of them, so that
those who say nothing keep nobody out."""
_PAUSE_S = 0.1


class LinkAcceptor:
    """Accepts connections for a process.

    Args:
        listener: a listening socket; its owner closes it.
        what: names the kind of the others, for people.
        max_links: connections at the same time, after their hello.
        serve: gets each socket and the peer's address, once the hello is over. The socket is closed
            when it returns, if it has not closed it.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: LinkKey,
        what: str,
        max_links: int,
        serve: Callable[[LinkSocket, str], Awaitable[None]],
    ) -> None:
        self._listener, self._key, self._what, self._max_links = listener, key, what, max_links
        self._serve = serve
        self._open = 0
        self._strangers: OrderedDict[asyncio.Task[None], None] = OrderedDict()
        """Those whose hello is not over, in the order of their coming."""

    async def run(self) -> None:
        """Accept until cancelled; cancelling ends what is being served, too."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    sock, peer = await loop.sock_accept(self._listener)
                except OSError as error:  # no descriptor is free, or the connection is lost already
                    logger.warning("%s could not connect: %s", self._what, error)
                    await asyncio.sleep(_PAUSE_S)
                    continue
                if len(self._strangers) >= MAX_STRANGERS:
                    self._strangers.popitem(last=False)[0].cancel()
                name = f"{self._what}:{peer[0]}"
                task = group.create_task(self._welcome(sock, str(Address(*peer[:2]))), name=name)
                self._strangers[task] = None
                task.add_done_callback(partial(self._on_ended, sock))

    def _on_ended(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        """Also of one that was cancelled before it began."""
        self._strangers.pop(task, None)
        sock.close()

    async def _welcome(self, sock: socket.socket, peer: str) -> None:
        carrier = await self._greet(sock, peer)
        if carrier is None:
            return
        self._open += 1
        try:
            await self._serve(carrier, peer)
        except Exception:  # the boundary of a connection: the others continue
            logger.exception("%s at %s failed", self._what, peer)
        finally:
            self._open -= 1
            carrier.close()

    async def _greet(self, sock: socket.socket, peer: str) -> LinkSocket | None:
        """The connection; None: the other end does not have the key, or there is no room for it."""
        try:
            async with asyncio.timeout(HELLO_S):
                carrier = await shake_hands(sock, LinkSide.ACCEPTED, self._key)
        except (OSError, TimeoutError, ConfigError) as error:
            why = error or "no hello in time"
            logger.warning("%s did not become %s: %s", peer, self._what, why)
            return None
        this = asyncio.current_task()
        assert this is not None, "it runs in a task of its own"
        self._strangers.pop(this, None)  # it may have been told to make room in this moment
        if self._open >= self._max_links:
            logger.warning("%s at %s is one too many", self._what, peer)
            carrier.close()
            return None
        return carrier
