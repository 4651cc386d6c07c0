"""Connections that become links: each is accepted, exchanges hellos and is served independently."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

from cantata.cluster.address import Address
from cantata.cluster.key import LinkKey
from cantata.cluster.link.connecting import HELLO_S, shake_hands
from cantata.cluster.link.hello import Side

logger = logging.getLogger(__name__)

_PAUSE_S = 0.1


class Acceptor:
    """Accepts connections for a process.

    Args:
        listener: a listening socket; its owner closes it.
        key: that the others must have.
        what: names the kind of the others, for people.
        most: connections at the same time, including those whose hello is not over.
        serve: gets each socket, which it closes, and the peer's address; called once the hello is
            over.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: LinkKey,
        what: str,
        most: int,
        serve: Callable[[socket.socket, str], Awaitable[None]],
    ) -> None:
        self._listener, self._key, self._what, self._most = listener, key, what, most
        self._serve = serve
        self._open = 0

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
                if self._open >= self._most:
                    logger.warning("%s at %s is one too many", self._what, peer[0])
                    sock.close()
                    continue
                self._open += 1
                name = f"{self._what}:{peer[0]}"
                group.create_task(self._welcome(sock, str(Address(*peer[:2]))), name=name)

    async def _welcome(self, sock: socket.socket, peer: str) -> None:
        try:
            async with asyncio.timeout(HELLO_S):
                await shake_hands(sock, Side.ACCEPTED, self._key)
        except (OSError, TimeoutError) as error:
            why = error or "no hello in time"
            logger.warning("%s did not become %s: %s", peer, self._what, why)
            sock.close()
            self._open -= 1
            return
        except asyncio.CancelledError:
            sock.close()
            raise
        try:
            await self._serve(sock, peer)
        except Exception:  # the boundary of a connection: the others continue
            logger.exception("%s at %s failed", self._what, peer)
        finally:
            self._open -= 1
