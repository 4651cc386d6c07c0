"""A stage host: runs stages for servers that connect, each over its own link."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping

from cantata.contract.model.plugin import ModelPlugin
from cantata.distributed.key import LinkKey
from cantata.distributed.link.accepting import LinkAcceptor
from cantata.distributed.link.connecting import get_address
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.tls import LinkSocket
from cantata.distributed.stages.host.pipeline import StageLogs
from cantata.distributed.stages.host.session import HostSession

logger = logging.getLogger(__name__)

MAX_PIPELINES = 64
"""Links at the same time, including those whose hello is not over."""


class StageHost:
    """Accepts servers until it is stopped.

    Args:
        plugins: the models whose stages it may run, by name.
        listener: a listening socket; closed here.
    """

    def __init__(
        self,
        plugins: Mapping[str, ModelPlugin],
        listener: socket.socket,
        key: LinkKey,
        logs: StageLogs,
    ) -> None:
        self.address = get_address(listener)
        """The address with the real port."""
        self._plugins, self._logs = plugins, logs
        self._listener = listener
        self._heartbeat = Heartbeat()
        self._sessions: set[HostSession] = set()
        self._left = asyncio.Event()
        self._leaving = False
        self._acceptor = LinkAcceptor(listener, key, "a server", MAX_PIPELINES, self._serve)
        self._accepting: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._accepting = asyncio.create_task(self._acceptor.run(), name="cantata:accept-servers")

    async def drain(self, timeout_s: float) -> bool:
        """Accept no more servers, tell those that are here, and return when all have left.

        Returns:
            False: some have not left within the limit.
        """
        self._leaving = True
        for session in self._sessions:
            session.leave()
        try:
            async with asyncio.timeout(timeout_s):
                while self._sessions:
                    self._left.clear()
                    await self._left.wait()
        except TimeoutError:
            count = len(self._sessions)
            logger.warning("%d pipelines still had stages here after %g s", count, timeout_s)
            return False
        return True

    async def stop(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
        self._listener.close()
        self._heartbeat.close()

    async def _serve(self, sock: LinkSocket, peer: str) -> None:
        if self._leaving:
            sock.close()
            return
        session = HostSession(sock, peer, self._heartbeat, self._plugins, self._logs)
        self._sessions.add(session)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)
            self._left.set()
